data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  function_name = "${var.name}-janitor"
  place         = "${data.aws_region.current.region}:${data.aws_caller_identity.current.account_id}"
  function_arn  = "arn:${data.aws_partition.current.partition}:lambda:${local.place}:function:${local.function_name}"
  log_group_arn = "arn:${data.aws_partition.current.partition}:logs:${local.place}:log-group:${aws_cloudwatch_log_group.this.name}"

  environment = merge(
    {
      JANITOR_REDIS_URL     = var.redis.url
      JANITOR_REDIS_CLUSTER = tostring(var.redis.cluster)
    },
    var.redis.username == null ? {} : { JANITOR_REDIS_USERNAME = var.redis.username },
    var.redis_password == null ? {} : { JANITOR_REDIS_PASSWORD = var.redis_password },
    var.redis_password_secret == null ? {} : { JANITOR_REDIS_PASSWORD_SECRET_ARN = var.redis_password_secret.arn },
    length(var.queues) == 0 ? {} : { JANITOR_QUEUES = join(" ", var.queues) },
  )
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/queuehook/${var.name}/janitor"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_lambda_function" "this" {
  function_name                  = local.function_name
  description                    = "Gives the tasks of dead queuehook dispatchers back"
  role                           = var.role_arn == null ? aws_iam_role.function[0].arn : var.role_arn
  package_type                   = var.package.image_uri == null ? "Zip" : "Image"
  image_uri                      = var.package.image_uri
  filename                       = var.package.zip_file
  source_code_hash               = var.package.zip_hash
  runtime                        = var.package.image_uri == null ? "provided.al2023" : null
  handler                        = var.package.image_uri == null ? "bootstrap" : null
  architectures                  = [var.architecture]
  memory_size                    = var.memory
  timeout                        = var.timeout_seconds
  reserved_concurrent_executions = 1 # two sweeps at once do no harm, and no good
  kms_key_arn                    = var.kms_key_arn
  tags                           = var.tags

  environment {
    variables = local.environment
  }

  logging_config {
    log_format = "Text" # the metrics are lines of the log, which JSON would wrap
    log_group  = aws_cloudwatch_log_group.this.name
  }

  vpc_config {
    subnet_ids         = var.subnet_ids
    security_group_ids = [aws_security_group.this.id]
  }

  # Without its permissions the function can't be made, nor its network interfaces deleted.
  depends_on = [aws_iam_role_policy.function]
}

# The scheduler invokes asynchronously. A failed sweep is not repeated: the next one is due within a minute.
resource "aws_lambda_function_event_invoke_config" "this" {
  function_name                = aws_lambda_function.this.function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
}

resource "aws_scheduler_schedule" "this" {
  name                = local.function_name
  description         = "Sweeps of the queuehook janitor"
  schedule_expression = var.schedule

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.this.arn
    role_arn = var.scheduler_role_arn == null ? aws_iam_role.scheduler[0].arn : var.scheduler_role_arn

    retry_policy {
      maximum_retry_attempts       = var.schedule_retries
      maximum_event_age_in_seconds = 60
    }
  }
}

resource "aws_security_group" "this" {
  name        = local.function_name
  description = "queuehook janitor: out to Redis"
  vpc_id      = var.vpc_id
  tags        = merge(var.tags, { Name = local.function_name })
}

resource "aws_vpc_security_group_egress_rule" "redis_cidr" {
  for_each = toset(var.redis.cidr_blocks)

  security_group_id = aws_security_group.this.id
  description       = "Redis"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = var.redis.port
  to_port           = var.redis.port
  tags              = var.tags
}

resource "aws_vpc_security_group_egress_rule" "redis" {
  count = length(var.redis.cidr_blocks) == 0 ? 1 : 0

  security_group_id            = aws_security_group.this.id
  description                  = "Redis"
  referenced_security_group_id = var.redis.security_group_id
  ip_protocol                  = "tcp"
  from_port                    = var.redis.port
  to_port                      = var.redis.port
  tags                         = var.tags
}

resource "aws_vpc_security_group_egress_rule" "secrets_manager" {
  count = var.redis_password_secret == null ? 0 : 1

  security_group_id = aws_security_group.this.id
  description       = "Secrets Manager"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  tags              = var.tags
}
