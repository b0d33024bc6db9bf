locals {
  redis = var.redis != null ? var.redis : {
    url               = module.redis[0].url
    cluster           = module.redis[0].cluster
    port              = module.redis[0].port
    username          = null
    password_secret   = null
    security_group_id = module.redis[0].security_group_id
    cidr_blocks       = []
  }

  # Whether Redis has a security group that is to let us in: known before anything is made.
  opens_redis = var.redis == null || try(var.redis.security_group_id, null) != null
}

module "redis" {
  source = "./modules/redis"
  count  = var.redis == null ? 1 : 0

  name                    = var.name
  tags                    = var.tags
  vpc_id                  = var.network.vpc_id
  subnet_ids              = coalesce(var.network.redis_subnet_ids, var.network.subnet_ids)
  mode                    = var.new_redis.mode
  engine_version          = var.new_redis.engine_version
  node_type               = var.new_redis.node_type
  nodes                   = var.new_redis.nodes
  snapshot_retention_days = var.new_redis.snapshot_retention_days
  kms_key_arn             = var.new_redis.kms_key_arn
  max_storage_gb          = var.new_redis.max_storage_gb
}

module "dispatcher" {
  source = "./modules/dispatcher"

  name                       = var.name
  tags                       = var.tags
  image                      = var.image
  vpc_id                     = var.network.vpc_id
  subnet_ids                 = var.network.subnet_ids
  assign_public_ip           = var.network.assign_public_ip
  cluster_arn                = var.dispatcher.cluster_arn
  execution_role_arn         = var.dispatcher.execution_role_arn
  task_role_arn              = var.dispatcher.task_role_arn
  routes                     = var.routes
  invoke_function_arns       = var.invoke_function_arns
  redis                      = local.redis
  signing_secret             = var.signing_secret
  kms_key_arns               = var.kms_key_arns
  environment                = var.environment
  shutdown_grace_seconds     = var.dispatcher.shutdown_grace_seconds
  cpu                        = var.dispatcher.cpu
  memory                     = var.dispatcher.memory
  architecture               = var.dispatcher.architecture
  desired_count              = var.dispatcher.desired_count
  autoscaling                = var.dispatcher.autoscaling
  target_ports               = var.dispatcher.target_ports
  scraper_security_group_ids = var.dispatcher.scraper_security_group_ids
  log_retention_days         = var.dispatcher.log_retention_days
}

module "janitor" {
  source = "./modules/janitor"
  count  = var.janitor == null ? 0 : 1

  name                  = var.name
  tags                  = var.tags
  package               = { image_uri = var.janitor.image_uri, zip_file = var.janitor.zip_file, zip_hash = var.janitor.zip_hash }
  architecture          = var.janitor.architecture
  vpc_id                = var.network.vpc_id
  subnet_ids            = coalesce(var.network.janitor_subnet_ids, var.network.subnet_ids)
  role_arn              = var.janitor.role_arn
  scheduler_role_arn    = var.janitor.scheduler_role_arn
  redis                 = local.redis
  redis_password        = var.janitor_redis_password
  redis_password_secret = var.janitor.reads_secret ? { arn = local.redis.password_secret, kms_key_arns = var.kms_key_arns } : null
  kms_key_arn           = var.janitor.kms_key_arn
  queues                = var.janitor.queues
  schedule              = var.janitor.schedule
  schedule_retries      = var.janitor.schedule_retries
  timeout_seconds       = var.janitor.timeout_seconds
  memory                = var.janitor.memory
  log_retention_days    = var.janitor.log_retention_days
}

module "alarms" {
  source = "./modules/alarms"
  count  = var.alarms == null ? 0 : 1

  name                     = var.name
  tags                     = var.tags
  queues                   = keys(var.routes)
  janitor_function_name    = module.janitor[0].function_name
  actions                  = var.alarms.actions
  max_dead_letters         = var.alarms.max_dead_letters
  max_oldest_ready_seconds = var.alarms.max_oldest_ready_seconds
  min_live_dispatchers     = var.alarms.min_live_dispatchers
}

resource "aws_vpc_security_group_ingress_rule" "redis_from_dispatcher" {
  count = local.opens_redis ? 1 : 0

  security_group_id            = local.redis.security_group_id
  description                  = "queuehook dispatchers"
  referenced_security_group_id = module.dispatcher.security_group_id
  ip_protocol                  = "tcp"
  from_port                    = local.redis.port
  to_port                      = local.redis.port
  tags                         = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "redis_from_janitor" {
  count = local.opens_redis && var.janitor != null ? 1 : 0

  security_group_id            = local.redis.security_group_id
  description                  = "queuehook janitor"
  referenced_security_group_id = module.janitor[0].security_group_id
  ip_protocol                  = "tcp"
  from_port                    = local.redis.port
  to_port                      = local.redis.port
  tags                         = var.tags
}
