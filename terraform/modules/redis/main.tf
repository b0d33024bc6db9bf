locals {
  port       = 6379
  serverless = var.mode == "serverless"
}

resource "aws_security_group" "this" {
  name        = "${var.name}-redis"
  description = "queuehook's Redis"
  vpc_id      = var.vpc_id
  tags        = merge(var.tags, { Name = "${var.name}-redis" })
}

resource "aws_elasticache_subnet_group" "this" {
  count = local.serverless ? 0 : 1

  name       = "${var.name}-redis"
  subnet_ids = var.subnet_ids
  tags       = var.tags
}

resource "aws_elasticache_parameter_group" "this" {
  count = local.serverless ? 0 : 1

  # Named after the family: a new engine gets a new group before the old one goes.
  name        = "${var.name}-valkey${split(".", var.engine_version)[0]}"
  family      = "valkey${split(".", var.engine_version)[0]}"
  description = "queuehook: a full Redis refuses tasks rather than losing some"
  tags        = var.tags

  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_elasticache_replication_group" "this" {
  count = local.serverless ? 0 : 1

  replication_group_id       = "${var.name}-redis"
  description                = "queuehook's tasks"
  engine                     = "valkey"
  engine_version             = var.engine_version
  node_type                  = var.node_type
  num_cache_clusters         = var.nodes
  port                       = local.port
  parameter_group_name       = aws_elasticache_parameter_group.this[0].name
  subnet_group_name          = aws_elasticache_subnet_group.this[0].name
  security_group_ids         = [aws_security_group.this.id]
  automatic_failover_enabled = true
  multi_az_enabled           = true
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  at_rest_encryption_enabled = true
  kms_key_id                 = var.kms_key_arn
  snapshot_retention_limit   = var.snapshot_retention_days
  final_snapshot_identifier  = "${var.name}-redis-final" # there may be tasks in it
  tags                       = var.tags
}

resource "aws_elasticache_serverless_cache" "this" {
  count = local.serverless ? 1 : 0

  name                     = "${var.name}-redis"
  description              = "queuehook's tasks"
  engine                   = "valkey"
  major_engine_version     = split(".", var.engine_version)[0]
  subnet_ids               = var.subnet_ids
  security_group_ids       = [aws_security_group.this.id]
  kms_key_id               = var.kms_key_arn
  snapshot_retention_limit = var.snapshot_retention_days
  tags                     = var.tags

  cache_usage_limits {
    data_storage {
      maximum = var.max_storage_gb
      unit    = "GB"
    }
  }
}
