# Everything on: autoscaling, janitor, alarms, signed requests.
module "queuehook" {
  source = "../.."

  name  = "hooks"
  tags  = { team = "platform" }
  image = var.image
  routes = {
    orders   = "https://api.example.com/hooks/orders"
    invoices = "https://billing.example.com:8443/hooks?source=shop"
  }
  network = {
    vpc_id     = var.vpc_id
    subnet_ids = var.subnet_ids
  }

  signing_secret = var.signing_secret
  environment    = { DISPATCHER_CONCURRENCY = "64" }

  dispatcher = {
    cpu                        = 512
    memory                     = 1024
    architecture               = "ARM64"
    shutdown_grace_seconds     = 60
    target_ports               = [443, 8443]
    scraper_security_group_ids = { prometheus = var.prometheus_security_group_id }
    autoscaling                = { min = 2, max = 10, backlog_per_task = 1000 }
  }

  new_redis = { node_type = "cache.m7g.large", nodes = 3 }
  janitor   = { image_uri = var.janitor_image, architecture = "arm64" }
  alarms    = { actions = [aws_sns_topic.alarms.arn], max_oldest_ready_seconds = 120, min_live_dispatchers = 2 }
}

resource "aws_sns_topic" "alarms" {
  name = "hooks-alarms"
}
