resource "aws_iam_role" "function" {
  count = var.role_arn == null ? 1 : 0

  name        = local.function_name
  description = "queuehook janitor"
  tags        = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

locals {
  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html: the Lambda service makes the interfaces with
  # the function's role; what runs inside the function may not.
  interface_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "ec2:UnassignPrivateIpAddresses",
  ]

  secret_keys = var.redis_password_secret == null ? [] : var.redis_password_secret.kms_key_arns
}

resource "aws_iam_role_policy" "function" {
  count = var.role_arn == null ? 1 : 0

  name = "sweep"
  role = aws_iam_role.function[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "WriteLog"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = ["${local.log_group_arn}:log-stream:*"]
        },
        {
          Sid      = "InterfacesForTheLambdaService"
          Effect   = "Allow"
          Action   = local.interface_actions
          Resource = ["*"]
        },
        {
          Sid       = "NoInterfacesForTheFunction"
          Effect    = "Deny"
          Action    = local.interface_actions
          Resource  = ["*"]
          Condition = { ArnEquals = { "lambda:SourceFunctionArn" = [local.function_arn] } }
        },
      ],
      var.kms_key_arn == null ? [] : [{
        Sid      = "DecryptEnvironment"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [var.kms_key_arn]
      }],
      var.redis_password_secret == null ? [] : [{
        Sid      = "ReadPassword"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = [regex("^arn:[^:]+:secretsmanager:[^:]+:[^:]+:secret:[^:]+", var.redis_password_secret.arn)]
      }],
      length(local.secret_keys) == 0 ? [] : [{
        Sid      = "DecryptPassword"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = local.secret_keys
      }],
    )
  })
}

resource "aws_iam_role" "scheduler" {
  count = var.scheduler_role_arn == null ? 1 : 0

  name        = "${local.function_name}-schedule"
  description = "EventBridge Scheduler, to invoke the queuehook janitor"
  tags        = var.tags
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = data.aws_caller_identity.current.account_id
          "aws:SourceArn"     = "arn:${data.aws_partition.current.partition}:scheduler:${local.place}:schedule-group/default"
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  count = var.scheduler_role_arn == null ? 1 : 0

  name = "invoke"
  role = aws_iam_role.scheduler[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "lambda:InvokeFunction"
      Resource = [local.function_arn, "${local.function_arn}:*"]
    }]
  })
}
