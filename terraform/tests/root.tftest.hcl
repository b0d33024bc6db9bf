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
  image   = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/dispatcher:1.0.0"
  routes  = { orders = "https://api.example.com/a,b" }
  network = { vpc_id = "vpc-1", subnet_ids = ["subnet-1", "subnet-2"] }
}

run "minimal" {
  command = plan
  assert {
    condition     = output.janitor_function_name == null && length(output.alarm_names) == 0
    error_message = "nothing that was not asked for"
  }
  assert {
    condition     = output.stop_timeout_seconds == 35
    error_message = "the grace and 10 s"
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.redis_from_dispatcher) == 1 && length(aws_vpc_security_group_ingress_rule.redis_from_janitor) == 0
    error_message = "Redis lets the dispatchers in"
  }
}

run "everything" {
  command = plan
  variables {
    dispatcher = { autoscaling = { max = 4 } }
    janitor    = { zip_file = "janitor.zip" }
    alarms     = {}
  }
  assert {
    condition     = output.janitor_function_name == "queuehook-janitor" && length(output.alarm_names) == 5
    error_message = "janitor and alarms"
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.redis_from_janitor) == 1
    error_message = "Redis lets the janitor in"
  }
}

run "your_redis" {
  command = plan
  variables {
    redis = { url = "rediss://redis.example.com:6379/0", cidr_blocks = ["10.0.0.0/8"] }
  }
  assert {
    condition     = length(module.redis) == 0 && length(aws_vpc_security_group_ingress_rule.redis_from_dispatcher) == 0
    error_message = "your Redis is left alone"
  }
  assert {
    condition     = output.redis_url == "rediss://redis.example.com:6379/0"
    error_message = "your URL"
  }
}

run "your_redis_with_a_secret_for_both" {
  command = plan
  variables {
    redis = {
      url             = "rediss://redis.example.com:6379/0"
      cidr_blocks     = ["10.0.0.0/8"]
      password_secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf"
    }
    janitor = { zip_file = "janitor.zip", reads_secret = true }
  }
  assert {
    condition     = output.janitor_function_name == "queuehook-janitor"
    error_message = "the janitor needs no password of its own"
  }
}

run "a_secret_to_be" {
  command = plan
  module {
    source = "./tests/made_secret"
  }
  assert {
    condition     = output.janitor_function_name == "queuehook-janitor"
    error_message = "a secret that is not there yet"
  }
}
