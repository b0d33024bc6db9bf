resource "aws_security_group" "this" {
  name        = "${var.name}-dispatcher"
  description = "queuehook dispatcher: out to Redis and to the targets"
  vpc_id      = var.vpc_id
  tags        = merge(var.tags, { Name = "${var.name}-dispatcher" })
}

resource "aws_vpc_security_group_egress_rule" "targets" {
  for_each = { for port in var.target_ports : tostring(port) => port }

  security_group_id = aws_security_group.this.id
  description       = "targets, and AWS itself, on ${each.key}"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = each.value
  to_port           = each.value
  tags              = var.tags
}

resource "aws_vpc_security_group_egress_rule" "redis_cidr" {
  for_each = toset(var.redis.cidr_blocks)

  security_group_id = aws_security_group.this.id
  description       = "Redis"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = var.redis.port
  to_port           = var.redis.port
  tags              = var.tags
}

resource "aws_vpc_security_group_egress_rule" "redis" {
  count = length(var.redis.cidr_blocks) == 0 ? 1 : 0

  security_group_id            = aws_security_group.this.id
  description                  = "Redis"
  referenced_security_group_id = var.redis.security_group_id
  ip_protocol                  = "tcp"
  from_port                    = var.redis.port
  to_port                      = var.redis.port
  tags                         = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "metrics" {
  for_each = var.scraper_security_group_ids

  security_group_id            = aws_security_group.this.id
  description                  = "metrics for ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = local.admin_port
  to_port                      = local.admin_port
  tags                         = var.tags
}
