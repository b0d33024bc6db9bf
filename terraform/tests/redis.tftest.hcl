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

run "replication_group" {
  command = plan
  module {
    source = "./modules/redis"
  }
  assert {
    condition     = one([for p in aws_elasticache_parameter_group.this[0].parameter : p.value if p.name == "maxmemory-policy"]) == "noeviction"
    error_message = "a full Redis must refuse"
  }
  assert {
    condition     = aws_elasticache_replication_group.this[0].transit_encryption_enabled && aws_elasticache_replication_group.this[0].multi_az_enabled
    error_message = "TLS, two zones"
  }
  assert {
    condition     = !output.cluster
    error_message = "no cluster mode"
  }
}

run "serverless" {
  command = plan
  module {
    source = "./modules/redis"
  }
  variables {
    mode = "serverless"
  }
  assert {
    condition     = output.cluster && length(aws_elasticache_replication_group.this) == 0
    error_message = "serverless speaks Redis Cluster"
  }
}
