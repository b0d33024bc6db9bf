# A secret that is made together with what reads it: its ARN is not known when the plan is made.
terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

resource "aws_secretsmanager_secret" "redis" {
  name = "redis"
}

module "queuehook" {
  source = "../.."

  image   = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/dispatcher:1.0.0"
  routes  = { orders = "https://api.example.com/hooks/orders" }
  network = { vpc_id = "vpc-1", subnet_ids = ["subnet-1"] }
  redis = {
    url             = "rediss://redis.example.com:6379/0"
    cidr_blocks     = ["10.0.0.0/8"]
    password_secret = aws_secretsmanager_secret.redis.arn
  }
  janitor = { zip_file = "janitor.zip", reads_secret = true }
}

output "janitor_function_name" {
  description = "Of the module."
  value       = module.queuehook.janitor_function_name
}
