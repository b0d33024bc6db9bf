data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}

locals {
  execution_role_arn = var.execution_role_arn == null ? aws_iam_role.execution[0].arn : var.execution_role_arn
  task_role_arn      = var.task_role_arn == null ? aws_iam_role.task[0].arn : var.task_role_arn

  log_group_arn = join(":", [
    "arn", data.aws_partition.current.partition, "logs", data.aws_region.current.region,
    data.aws_caller_identity.current.account_id, "log-group", aws_cloudwatch_log_group.this.name,
  ])

  # 123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/dispatcher:1.0
  ecr = try(regex("^([0-9]{12})\\.dkr\\.ecr\\.([a-z0-9-]+)\\.[a-z.]+/([^:@]+)", var.image), null)

  # An ARN in a container's secrets may name a JSON key, a stage and a version after the secret.
  secret_arns    = [for arn in values(local.secrets) : regex("^arn:[^:]+:secretsmanager:[^:]*:[^:]*:secret:[^:]+", arn) if strcontains(arn, ":secretsmanager:")]
  parameter_arns = [for arn in values(local.secrets) : arn if strcontains(arn, ":ssm:")]

  execution_statements = concat(
    [{
      Sid      = "WriteLog"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
      Resource = ["${local.log_group_arn}:log-stream:*"]
    }],
    local.ecr == null ? [] : [
      {
        Sid      = "LogInToECR" # knows no resources
        Effect   = "Allow"
        Action   = ["ecr:GetAuthorizationToken"]
        Resource = ["*"]
      },
      {
        Sid      = "PullImage"
        Effect   = "Allow"
        Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        Resource = ["arn:${data.aws_partition.current.partition}:ecr:${local.ecr[1]}:${local.ecr[0]}:repository/${local.ecr[2]}"]
      },
    ],
    length(local.secret_arns) == 0 ? [] : [{
      Sid      = "ReadSecrets"
      Effect   = "Allow"
      Action   = ["secretsmanager:GetSecretValue"]
      Resource = local.secret_arns
    }],
    length(local.parameter_arns) == 0 ? [] : [{
      Sid      = "ReadParameters"
      Effect   = "Allow"
      Action   = ["ssm:GetParameters"]
      Resource = local.parameter_arns
    }],
    length(var.kms_key_arns) == 0 ? [] : [{
      Sid      = "DecryptSecrets"
      Effect   = "Allow"
      Action   = ["kms:Decrypt"]
      Resource = var.kms_key_arns
    }],
  )

  assume_by_tasks = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id }
      }
    }]
  })
}

resource "aws_iam_role" "execution" {
  count = var.execution_role_arn == null ? 1 : 0

  name               = "${var.name}-dispatcher-execution"
  description        = "ECS, to start queuehook dispatchers"
  assume_role_policy = local.assume_by_tasks
  tags               = var.tags
}

resource "aws_iam_role_policy" "execution" {
  count = var.execution_role_arn == null ? 1 : 0

  name   = "start"
  role   = aws_iam_role.execution[0].id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.execution_statements })
}

resource "aws_iam_role" "task" {
  count = var.task_role_arn == null ? 1 : 0

  name               = "${var.name}-dispatcher"
  description        = "queuehook dispatchers"
  assume_role_policy = local.assume_by_tasks
  tags               = var.tags
}

resource "aws_iam_role_policy" "invoke" {
  count = var.task_role_arn == null && length(var.invoke_function_arns) > 0 ? 1 : 0

  name = "invoke"
  role = aws_iam_role.task[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "lambda:InvokeFunction"
      Resource = flatten([for arn in var.invoke_function_arns : [arn, "${arn}:*"]])
    }]
  })
}
