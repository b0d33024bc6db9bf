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
  image      = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/dispatcher:1.0.0"
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1"]
  routes     = { orders = "https://api.example.com/a,b" }
  redis      = { url = "rediss://redis.example.com:6379/0", security_group_id = "sg-1" }
}

run "name" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    name = "-x"
  }
  expect_failures = [var.name]
}

run "latest" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    image = "dispatcher:latest"
  }
  expect_failures = [var.image]
}

run "untagged" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    image = "registry:5000/dispatcher"
  }
  expect_failures = [var.image]
}

run "subnets" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    subnet_ids = []
  }
  expect_failures = [var.subnet_ids]
}

run "no_routes" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    routes = {}
  }
  expect_failures = [var.routes]
}

run "queue_with_a_space" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    routes = { "a b" = "https://a.example" }
  }
  expect_failures = [var.routes]
}

run "ftp_route" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    routes = { a = "ftp://a.example" }
  }
  expect_failures = [var.routes]
}

run "qualified_function" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    invoke_function_arns = ["arn:aws:lambda:eu-west-1:123456789012:function:f:live"]
  }
  expect_failures = [var.invoke_function_arns]
}

run "every_function" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    invoke_function_arns = ["*"]
  }
  expect_failures = [var.invoke_function_arns]
}

run "password_in_url" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    redis = { url = "redis://:secret@redis.example.com:6379/0" }
  }
  expect_failures = [var.redis]
}

run "password_by_value" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    redis = { url = "redis://redis.example.com:6379/0", password_secret = "hunter2" }
  }
  expect_failures = [var.redis]
}

run "signing_secret_by_value" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    signing_secret = "whsec_abc"
  }
  expect_failures = [var.signing_secret]
}

run "key_alias" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    kms_key_arns = ["alias/mine"]
  }
  expect_failures = [var.kms_key_arns]
}

run "foreign_setting" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    environment = { PATH = "/bin" }
  }
  expect_failures = [var.environment]
}

run "setting_with_its_own_variable" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    environment = { DISPATCHER_ROUTES = "a=https://a.example" }
  }
  expect_failures = [var.environment]
}

run "grace_beyond_fargate" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    shutdown_grace_seconds = 111
  }
  expect_failures = [var.shutdown_grace_seconds]
}

run "cpu" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    cpu = 300
  }
  expect_failures = [var.cpu]
}

run "memory" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    memory = 256
  }
  expect_failures = [var.memory]
}

run "architecture" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    architecture = "arm64"
  }
  expect_failures = [var.architecture]
}

run "desired_count" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    desired_count = -1
  }
  expect_failures = [var.desired_count]
}

run "autoscaling_upside_down" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    autoscaling = { min = 5, max = 4 }
  }
  expect_failures = [var.autoscaling]
}

run "autoscaling_on_nothing" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    autoscaling = { max = 4, backlog_per_task = 0 }
  }
  expect_failures = [var.autoscaling]
}

run "autoscaling_on_unknown_queue" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    autoscaling = { max = 4, queues = ["mails"] }
  }
  expect_failures = [var.autoscaling]
}

run "port" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    target_ports = [0]
  }
  expect_failures = [var.target_ports]
}

run "retention" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    log_retention_days = 2
  }
  expect_failures = [var.log_retention_days]
}

run "cluster" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    cluster_arn = "mine"
  }
  expect_failures = [var.cluster_arn]
}

run "execution_role" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    execution_role_arn = "mine"
  }
  expect_failures = [var.execution_role_arn]
}

run "task_role" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    task_role_arn = "arn:aws:iam::123456789012:user/mine"
  }
  expect_failures = [var.task_role_arn]
}

run "redis_port" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    redis = { url = "rediss://redis.example.com:70000/0", port = 70000, security_group_id = "sg-1" }
  }
  expect_failures = [var.redis]
}

run "redis_address" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    redis = { url = "rediss://redis.example.com:6379/0", cidr_blocks = ["10.0.0.7"] }
  }
  expect_failures = [var.redis]
}

run "memory_between_the_steps" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    memory = 1500
  }
  expect_failures = [var.memory]
}

run "memory_above_the_last_step" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    cpu    = 4096
    memory = 31744
  }
  expect_failures = [var.memory]
}

run "autoscaling_on_a_name_that_CloudWatch_does_not_take" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    routes      = { "tâches" = "https://api.example.com/" }
    autoscaling = { max = 4 }
  }
  expect_failures = [var.autoscaling]
}
