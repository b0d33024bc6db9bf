locals {
  # As the janitor names them to CloudWatch: a colon at the beginning is \x3a.
  scaled_queues = var.autoscaling == null ? [] : [
    for queue in coalesce(var.autoscaling.queues, keys(var.routes)) : startswith(queue, ":") ? "\\x3a${substr(queue, 1, -1)}" : queue
  ]
}

resource "aws_appautoscaling_target" "this" {
  count = var.autoscaling == null ? 0 : 1

  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${split("/", local.cluster_arn)[1]}/${aws_ecs_service.scaled[0].name}"
  min_capacity       = var.autoscaling.min
  max_capacity       = var.autoscaling.max
  tags               = var.tags
}

resource "aws_appautoscaling_policy" "backlog" {
  count = var.autoscaling == null ? 0 : 1

  name               = "${var.name}-backlog-per-dispatcher"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this[0].service_namespace
  scalable_dimension = aws_appautoscaling_target.this[0].scalable_dimension
  resource_id        = aws_appautoscaling_target.this[0].resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.autoscaling.backlog_per_task
    scale_out_cooldown = 60
    scale_in_cooldown  = 300

    customized_metric_specification {
      dynamic "metrics" {
        for_each = local.scaled_queues
        content {
          id          = "ready${metrics.key}"
          return_data = false

          metric_stat {
            stat = "Maximum"

            metric {
              namespace   = "queuehook"
              metric_name = "ready"

              dimensions {
                name  = "queue"
                value = metrics.value
              }
            }
          }
        }
      }

      # Each dispatcher serves all routes, so any queue tells how many there are.
      metrics {
        id          = "live"
        return_data = false

        metric_stat {
          stat = "Maximum"

          metric {
            namespace   = "queuehook"
            metric_name = "live_dispatchers"

            dimensions {
              name  = "queue"
              value = local.scaled_queues[0]
            }
          }
        }
      }

      metrics {
        id          = "backlog"
        label       = "ready tasks per dispatcher"
        expression  = "(${join(" + ", [for i, _ in local.scaled_queues : "ready${i}"])}) / IF(live > 0, live, 1)"
        return_data = true
      }
    }
  }
}
