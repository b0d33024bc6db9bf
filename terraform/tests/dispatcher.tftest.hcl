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
  image      = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/dispatcher:1.0.0"
  vpc_id     = "vpc-1"
  subnet_ids = ["subnet-1"]
  routes     = { orders = "https://api.example.com/a,b" }
  redis      = { url = "rediss://redis.example.com:6379/0", security_group_id = "sg-1" }
}

run "service" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    shutdown_grace_seconds = 60
    signing_secret         = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:sign-AbCdEf:key::"
    invoke_function_arns   = ["arn:aws:lambda:eu-west-1:123456789012:function:f"]
  }
  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].stopTimeout == 70
    error_message = "ECS must wait for the grace and 10 s more"
  }
  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].readonlyRootFilesystem && jsondecode(aws_ecs_task_definition.this.container_definitions)[0].user == "65532:65532"
    error_message = "read-only, not root"
  }
  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].linuxParameters.capabilities.drop == ["ALL"]
    error_message = "no capabilities"
  }
  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].healthCheck.command == ["CMD", "/usr/local/bin/dispatcher", "health"]
    error_message = "the image holds no shell"
  }
  assert {
    condition     = contains([for e in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment : "${e.name}=${e.value}"], "GOMEMLIMIT=460MiB")
    error_message = "nine tenths of the memory"
  }
  assert {
    condition     = jsondecode(aws_iam_role.task[0].assume_role_policy).Statement[0].Condition.StringEquals == { "aws:SourceAccount" = "123456789012" }
    error_message = "no other account's tasks"
  }
  assert {
    condition     = contains([for e in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment : "${e.name}=${e.value}"], "DISPATCHER_SHUTDOWN_GRACE=60s")
    error_message = "the grace"
  }
  assert {
    condition     = contains([for e in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment : "${e.name}=${e.value}"], "DISPATCHER_ROUTES=orders=https://api.example.com/a%2Cb")
    error_message = "a comma in a URL is escaped"
  }
  assert {
    condition     = [for s in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].secrets : s.name] == ["DISPATCHER_SIGNING_SECRET"]
    error_message = "secrets are no environment"
  }
  assert {
    condition     = aws_ecs_service.fixed[0].deployment_circuit_breaker[0].enable && aws_ecs_service.fixed[0].deployment_circuit_breaker[0].rollback && aws_ecs_service.fixed[0].deployment_minimum_healthy_percent == 100
    error_message = "a bad deployment goes back"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.invoke[0].policy).Statement[0].Resource == ["arn:aws:lambda:eu-west-1:123456789012:function:f", "arn:aws:lambda:eu-west-1:123456789012:function:f:*"]
    error_message = "exactly the listed functions, qualified and not"
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.execution[0].policy).Statement : s.Resource if s.Sid == "ReadSecrets"][0] == ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:sign-AbCdEf"]
    error_message = "exactly the secret"
  }
  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.execution[0].policy).Statement : s.Resource if s.Sid == "PullImage"][0] == ["arn:aws:ecr:eu-west-1:123456789012:repository/team/dispatcher"]
    error_message = "exactly the repository"
  }
  assert {
    condition     = alltrue([for s in jsondecode(aws_iam_role_policy.execution[0].policy).Statement : !contains(s.Resource, "*") || s.Sid == "LogInToECR"])
    error_message = "no wildcards but where AWS knows no resources"
  }
}

run "bring_your_own" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    cluster_arn        = "arn:aws:ecs:eu-west-1:123456789012:cluster/mine"
    execution_role_arn = "arn:aws:iam::123456789012:role/mine"
    task_role_arn      = "arn:aws:iam::123456789012:role/mine"
    autoscaling        = { max = 4 }
  }
  assert {
    condition     = length(aws_ecs_cluster.this) + length(aws_iam_role.execution) + length(aws_iam_role.task) == 0
    error_message = "nothing made that was brought"
  }
  assert {
    condition     = length(aws_ecs_service.fixed) == 0 && aws_appautoscaling_target.this[0].resource_id == "service/mine/hooks-dispatcher-scaled"
    error_message = "the scaled service"
  }
  assert {
    condition     = aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].target_value == 500
    error_message = "backlog per task"
  }
}

run "autoscaling" {
  command = plan
  module {
    source = "./modules/dispatcher"
  }
  variables {
    routes      = { orders = "https://api.example.com/", ":mails" = "https://api.example.com/" }
    autoscaling = { min = 3, max = 9 }
  }
  assert {
    condition     = aws_appautoscaling_target.this[0].min_capacity == 3 && aws_appautoscaling_target.this[0].max_capacity == 9 && aws_ecs_service.scaled[0].desired_count == 3
    error_message = "from 3 to 9"
  }
  assert {
    condition = toset([
      for m in aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].customized_metric_specification[0].metrics :
      "${m.id} ${one(m.metric_stat[0].metric[0].dimensions[*].value)} ${m.metric_stat[0].metric[0].namespace} ${m.metric_stat[0].metric[0].metric_name}" if !m.return_data
    ]) == toset(["live \\x3amails queuehook live_dispatchers", "ready0 \\x3amails queuehook ready", "ready1 orders queuehook ready"])
    error_message = "what the janitor reports"
  }
  assert {
    condition     = one([for m in aws_appautoscaling_policy.backlog[0].target_tracking_scaling_policy_configuration[0].customized_metric_specification[0].metrics : m.expression if m.return_data]) == "(ready0 + ready1) / IF(live > 0, live, 1)"
    error_message = "for each dispatcher that lives"
  }
}
