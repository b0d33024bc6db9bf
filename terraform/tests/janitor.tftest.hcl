# No account and no network: plans only, on a mocked provider.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }
}

variables {
  name       = "hooks"
  package    = { image_uri = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/janitor:1.0.0" }
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1"]
  redis      = { url = "rediss://redis.example.com:6379/0", security_group_id = "sg-1" }
}

run "function" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  assert {
    condition     = aws_lambda_function.this.reserved_concurrent_executions == 1
    error_message = "one sweep at a time"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.this.maximum_retry_attempts == 0 && aws_lambda_function_event_invoke_config.this.maximum_event_age_in_seconds == 60
    error_message = "no sweep is repeated, none is late"
  }
  assert {
    condition     = aws_lambda_function.this.logging_config[0].log_format == "Text" && aws_lambda_function.this.logging_config[0].log_group == "/queuehook/hooks/janitor"
    error_message = "the metrics are lines of the log as they are"
  }
  assert {
    condition     = aws_scheduler_schedule.this.schedule_expression == "rate(1 minute)" && aws_scheduler_schedule.this.flexible_time_window[0].mode == "OFF" && aws_lambda_function.this.timeout == 60
    error_message = "a sweep a minute"
  }
  assert {
    condition     = toset(jsondecode(aws_iam_role_policy.function[0].policy).Statement[2].Action) == toset(jsondecode(aws_iam_role_policy.function[0].policy).Statement[1].Action)
    error_message = "nothing about interfaces is left to the function"
  }
  assert {
    condition     = jsondecode(aws_iam_role.scheduler[0].assume_role_policy).Statement[0].Condition.StringEquals == { "aws:SourceAccount" = "123456789012", "aws:SourceArn" = "arn:aws:scheduler:eu-west-1:123456789012:schedule-group/default" }
    error_message = "no other account's schedules"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.scheduler[0].policy).Statement[0].Action == "lambda:InvokeFunction" && length(jsondecode(aws_iam_role_policy.scheduler[0].policy).Statement) == 1
    error_message = "to invoke, and nothing else"
  }
  assert {
    condition     = aws_scheduler_schedule.this.target[0].retry_policy[0].maximum_event_age_in_seconds == 60 && aws_scheduler_schedule.this.target[0].retry_policy[0].maximum_retry_attempts == 0
    error_message = "old events are dropped"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.function[0].policy).Statement[2].Effect == "Deny" && jsondecode(aws_iam_role_policy.function[0].policy).Statement[2].Condition.ArnEquals["lambda:SourceFunctionArn"] == ["arn:aws:lambda:eu-west-1:123456789012:function:hooks-janitor"]
    error_message = "interfaces are for the Lambda service only"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.scheduler[0].policy).Statement[0].Resource[0] == "arn:aws:lambda:eu-west-1:123456789012:function:hooks-janitor"
    error_message = "the scheduler may invoke the janitor only"
  }
  assert {
    condition     = !contains(keys(aws_lambda_function.this.environment[0].variables), "JANITOR_QUEUES")
    error_message = "an unset list of queues is no empty one"
  }
}

run "zip" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    package = { zip_file = "janitor.zip" }
  }
  assert {
    condition     = aws_lambda_function.this.handler == "bootstrap" && aws_lambda_function.this.package_type == "Zip"
    error_message = "a zip file"
  }
}

run "no_secret" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  assert {
    condition     = length(aws_vpc_security_group_egress_rule.secrets_manager) == 0 && length(jsondecode(aws_iam_role_policy.function[0].policy).Statement) == 3 && !contains(keys(aws_lambda_function.this.environment[0].variables), "JANITOR_REDIS_PASSWORD_SECRET_ARN")
    error_message = "without a secret nothing of it"
  }
}

run "secret" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis_password_secret = {
      arn          = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf:password::"
      kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/1"]
    }
  }
  assert {
    condition     = aws_lambda_function.this.environment[0].variables["JANITOR_REDIS_PASSWORD_SECRET_ARN"] == "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf:password::"
    error_message = "the function is told the whole of it"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.function[0].policy).Statement[3].Action == ["secretsmanager:GetSecretValue"] && jsondecode(aws_iam_role_policy.function[0].policy).Statement[3].Resource == ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf"]
    error_message = "it may read this secret and no other"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.function[0].policy).Statement[4].Action == ["kms:Decrypt"] && jsondecode(aws_iam_role_policy.function[0].policy).Statement[4].Resource == ["arn:aws:kms:eu-west-1:123456789012:key/1"]
    error_message = "it may decrypt with the key"
  }
  assert {
    condition     = aws_vpc_security_group_egress_rule.secrets_manager[0].from_port == 443 && aws_vpc_security_group_egress_rule.secrets_manager[0].to_port == 443
    error_message = "it gets out to Secrets Manager"
  }
}
