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
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1", "subnet-2"]
}

run "name" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    name = "a--b"
  }
  expect_failures = [var.name]
}

run "one_subnet" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    subnet_ids = ["subnet-1"]
  }
  expect_failures = [var.subnet_ids]
}

run "mode" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    mode = "single"
  }
  expect_failures = [var.mode]
}

run "engine" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    engine_version = "6.2"
  }
  expect_failures = [var.engine_version]
}

run "node_type" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    node_type = "m7g.large"
  }
  expect_failures = [var.node_type]
}

run "one_node" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    nodes = 1
  }
  expect_failures = [var.nodes]
}

run "snapshots" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    snapshot_retention_days = 0
  }
  expect_failures = [var.snapshot_retention_days]
}

run "storage" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    max_storage_gb = 0
  }
  expect_failures = [var.max_storage_gb]
}

run "key" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    kms_key_arn = "alias/mine"
  }
  expect_failures = [var.kms_key_arn]
}
