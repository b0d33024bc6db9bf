# A dispatcher, a Redis, and nothing else: dispatchers sweep for each other.
module "queuehook" {
  source = "../.."

  image  = var.image
  routes = { orders = "https://api.example.com/hooks/orders" }
  network = {
    vpc_id     = var.vpc_id
    subnet_ids = var.subnet_ids
  }
}
