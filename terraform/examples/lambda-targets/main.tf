# Tasks go to Lambda functions; the dispatchers may invoke these two and nothing else.
module "queuehook" {
  source = "../.."

  image = var.image
  routes = {
    thumbs = "lambda:thumbs:live"
    mails  = "lambda:mails"
  }
  invoke_function_arns = [for f in ["thumbs", "mails"] : "arn:aws:lambda:${var.region}:${var.account_id}:function:${f}"]
  environment          = { AWS_REGION = var.region }
  network = {
    vpc_id     = var.vpc_id
    subnet_ids = var.subnet_ids
  }
}
