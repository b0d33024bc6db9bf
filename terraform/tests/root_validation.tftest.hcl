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

run "name" {
  command = plan
  variables {
    name = "Bad_Name"
  }
  expect_failures = [var.name]
}

run "no_subnets" {
  command = plan
  variables {
    network = { vpc_id = "vpc-1", subnet_ids = [] }
  }
  expect_failures = [var.network]
}

run "lambda_route_without_permission" {
  command = plan
  variables {
    routes = { thumbs = "lambda:thumbs" }
  }
  expect_failures = [var.invoke_function_arns]
}

run "autoscaling_without_janitor" {
  command = plan
  variables {
    dispatcher = { autoscaling = { max = 4 } }
  }
  expect_failures = [var.dispatcher]
}

run "redis_without_a_way" {
  command = plan
  variables {
    redis = { url = "rediss://redis.example.com:6379/0" }
  }
  expect_failures = [var.redis]
}

run "redis_with_two_ways" {
  command = plan
  variables {
    redis = { url = "rediss://redis.example.com:6379/0", security_group_id = "sg-1", cidr_blocks = ["10.0.0.0/8"] }
  }
  expect_failures = [var.redis]
}

run "password_that_the_janitor_cannot_read" {
  command = plan
  variables {
    redis = {
      url             = "rediss://redis.example.com:6379/0"
      cidr_blocks     = ["10.0.0.0/8"]
      password_secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf"
    }
    janitor = { zip_file = "janitor.zip" }
  }
  expect_failures = [var.redis]
}

run "alarms_without_janitor" {
  command = plan
  variables {
    alarms = {}
  }
  expect_failures = [var.alarms]
}

run "janitor_reads_no_secret" {
  command = plan
  variables {
    redis   = { url = "rediss://redis.example.com:6379/0", cidr_blocks = ["10.0.0.0/8"] }
    janitor = { zip_file = "janitor.zip", reads_secret = true }
  }
  expect_failures = [var.redis]
}

run "janitor_reads_a_parameter" {
  command = plan
  variables {
    redis = {
      url             = "rediss://redis.example.com:6379/0"
      cidr_blocks     = ["10.0.0.0/8"]
      password_secret = "arn:aws:ssm:eu-west-1:123456789012:parameter/redis"
    }
    janitor = { zip_file = "janitor.zip", reads_secret = true }
  }
  expect_failures = [var.redis]
}

run "janitor_with_secret_and_password" {
  command = plan
  variables {
    redis = {
      url             = "rediss://redis.example.com:6379/0"
      cidr_blocks     = ["10.0.0.0/8"]
      password_secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf"
    }
    janitor                = { zip_file = "janitor.zip", reads_secret = true }
    janitor_redis_password = "hunter2"
  }
  expect_failures = [var.janitor_redis_password]
}
