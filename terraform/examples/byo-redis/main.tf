# A Redis with a password, a cluster and roles that are there already; the janitor from the zip file of a release.
module "queuehook" {
  source = "../.."

  image  = var.image
  routes = { orders = "https://api.example.com/hooks/orders" }
  network = {
    vpc_id     = var.vpc_id
    subnet_ids = var.subnet_ids
  }

  redis = {
    url             = "rediss://redis.internal.example.com:6380/0"
    port            = 6380
    username        = "queuehook"
    password_secret = var.redis_password_secret
    cidr_blocks     = ["10.20.0.0/24"]
  }

  dispatcher = {
    cluster_arn        = var.cluster_arn
    execution_role_arn = var.execution_role_arn
    task_role_arn      = var.task_role_arn
  }

  janitor = { zip_file = var.janitor_zip, zip_hash = filebase64sha256(var.janitor_zip), reads_secret = true }
}
