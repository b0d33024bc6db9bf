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

run "name" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    name = "X"
  }
  expect_failures = [var.name]
}

run "no_package" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    package = {}
  }
  expect_failures = [var.package]
}

run "two_packages" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    package = { image_uri = "a:1", zip_file = "a.zip" }
  }
  expect_failures = [var.package]
}

run "architecture" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    architecture = "ARM64"
  }
  expect_failures = [var.architecture]
}

run "subnets" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    subnet_ids = []
  }
  expect_failures = [var.subnet_ids]
}

run "password_in_url" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis = { url = "redis://:secret@redis.example.com:6379/0" }
  }
  expect_failures = [var.redis]
}

run "schedule" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    schedule = "every minute"
  }
  expect_failures = [var.schedule]
}

run "retries" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    schedule_retries = 2
  }
  expect_failures = [var.schedule_retries]
}

run "timeout" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    timeout_seconds = 10
  }
  expect_failures = [var.timeout_seconds]
}

run "memory" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    memory = 64
  }
  expect_failures = [var.memory]
}

run "retention" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    log_retention_days = 2
  }
  expect_failures = [var.log_retention_days]
}

run "secret_elsewhere" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis_password_secret = { arn = "arn:aws:ssm:eu-west-1:123456789012:parameter/redis" }
  }
  expect_failures = [var.redis_password_secret]
}

run "half_a_key_of_a_secret" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis_password_secret = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf:password" }
  }
  expect_failures = [var.redis_password_secret]
}

run "secret_and_password" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis_password        = "hunter2"
    redis_password_secret = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf" }
  }
  expect_failures = [var.redis_password_secret]
}

run "role" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    role_arn = "mine"
  }
  expect_failures = [var.role_arn]
}

run "scheduler_role" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    scheduler_role_arn = "mine"
  }
  expect_failures = [var.scheduler_role_arn]
}

run "redis_port" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis = { url = "rediss://redis.example.com:6379/0", port = 6379.5, security_group_id = "sg-1" }
  }
  expect_failures = [var.redis]
}

run "redis_address" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    redis = { url = "rediss://redis.example.com:6379/0", cidr_blocks = ["redis.example.com"] }
  }
  expect_failures = [var.redis]
}

run "key" {
  command = plan
  module {
    source = "./modules/janitor"
  }
  variables {
    kms_key_arn = "alias/mine"
  }
  expect_failures = [var.kms_key_arn]
}
