data "aws_region" "current" {}

locals {
  admin_port = 8080
  routes     = join(" ", [for queue, target in var.routes : "${queue}=${replace(target, ",", "%2C")}"])

  environment = merge(
    { GOMEMLIMIT = "${floor(var.memory * 0.9)}MiB" },
    var.environment,
    {
      DISPATCHER_ROUTES         = local.routes
      DISPATCHER_REDIS_URL      = var.redis.url
      DISPATCHER_REDIS_CLUSTER  = tostring(var.redis.cluster)
      DISPATCHER_SHUTDOWN_GRACE = "${var.shutdown_grace_seconds}s"
      DISPATCHER_ADMIN_ADDR     = ":${local.admin_port}"
    },
    var.redis.username == null ? {} : { DISPATCHER_REDIS_USERNAME = var.redis.username },
  )

  secrets = merge(
    var.redis.password_secret == null ? {} : { DISPATCHER_REDIS_PASSWORD = var.redis.password_secret },
    var.signing_secret == null ? {} : { DISPATCHER_SIGNING_SECRET = var.signing_secret },
  )
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/queuehook/${var.name}/dispatcher"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_ecs_cluster" "this" {
  count = var.cluster_arn == null ? 1 : 0

  name = var.name
  tags = var.tags
}

resource "aws_ecs_task_definition" "this" {
  family                   = "${var.name}-dispatcher"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  execution_role_arn       = local.execution_role_arn
  task_role_arn            = local.task_role_arn
  tags                     = var.tags

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.architecture
  }

  container_definitions = jsonencode([{
    name                   = "dispatcher"
    image                  = var.image
    essential              = true
    user                   = "65532:65532"
    readonlyRootFilesystem = true
    linuxParameters        = { capabilities = { drop = ["ALL"] } }
    environment            = [for name in sort(keys(local.environment)) : { name = name, value = local.environment[name] }]
    secrets                = [for name in sort(keys(local.secrets)) : { name = name, valueFrom = local.secrets[name] }]
    portMappings           = [{ containerPort = local.admin_port, protocol = "tcp" }]
    # The grace, and the time to tell Redis what became of the rest.
    stopTimeout = var.shutdown_grace_seconds + 10
    healthCheck = {
      command     = ["CMD", "/usr/local/bin/dispatcher", "health"]
      interval    = 10
      timeout     = 5
      retries     = 3
      startPeriod = 15
    }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.this.name
        awslogs-region        = data.aws_region.current.region
        awslogs-stream-prefix = "dispatcher"
        # A log that can't be written must not hold deliveries up.
        mode            = "non-blocking"
        max-buffer-size = "4m"
      }
    }
  }])
}

# Two services, which differ in nothing but who decides how many tasks there are: lifecycle takes no variables. They have
# different names, so that the one can start while the other drains.
resource "aws_ecs_service" "fixed" {
  count = var.autoscaling == null ? 1 : 0

  name                               = "${var.name}-dispatcher"
  cluster                            = local.cluster_arn
  task_definition                    = aws_ecs_task_definition.this.arn
  launch_type                        = "FARGATE"
  desired_count                      = var.desired_count
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  propagate_tags                     = "SERVICE"
  tags                               = var.tags

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [aws_security_group.this.id]
    assign_public_ip = var.assign_public_ip
  }
}

resource "aws_ecs_service" "scaled" {
  count = var.autoscaling == null ? 0 : 1

  name                               = "${var.name}-dispatcher-scaled"
  cluster                            = local.cluster_arn
  task_definition                    = aws_ecs_task_definition.this.arn
  launch_type                        = "FARGATE"
  desired_count                      = var.autoscaling.min
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  propagate_tags                     = "SERVICE"
  tags                               = var.tags

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [aws_security_group.this.id]
    assign_public_ip = var.assign_public_ip
  }

  lifecycle {
    ignore_changes = [desired_count]
  }
}

locals {
  cluster_arn = var.cluster_arn == null ? aws_ecs_cluster.this[0].arn : var.cluster_arn
  service     = one(concat(aws_ecs_service.fixed[*], aws_ecs_service.scaled[*]))
}
