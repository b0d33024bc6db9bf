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
    condition     = aws_elasticache_replication_group.this[0].transit_encryption_enabled && aws_elasticache_replication_group.this[0].transit_encryption_mode == "required" && aws_elasticache_replication_group.this[0].at_rest_encryption_enabled == "true"
    error_message = "encrypted on the way and at rest"
  }
  assert {
    condition     = aws_elasticache_replication_group.this[0].multi_az_enabled && aws_elasticache_replication_group.this[0].automatic_failover_enabled && aws_elasticache_replication_group.this[0].num_cache_clusters == 2
    error_message = "a replica in another zone"
  }
  assert {
    condition     = aws_elasticache_replication_group.this[0].engine == "valkey" && aws_elasticache_parameter_group.this[0].family == "valkey8"
    error_message = "Valkey, with the parameters of its version"
  }
  assert {
    condition     = aws_elasticache_replication_group.this[0].snapshot_retention_limit == 7 && aws_elasticache_replication_group.this[0].final_snapshot_identifier == "hooks-redis-final"
    error_message = "snapshots, one at the end"
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
