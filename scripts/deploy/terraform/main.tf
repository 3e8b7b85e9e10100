# An example: Postgres at AWS RDS, MongoDB at Atlas, and the chart in a cluster that is there. Both databases are in one region
# and are backed up to any second; read scripts/guides/trust/high-availability.md before you change that.
#   terraform init && terraform apply -var-file=production.tfvars
# The state has the secrets: keep it in an encrypted backend.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws          = { source = "hashicorp/aws", version = "~> 6.0" }
    mongodbatlas = { source = "mongodb/mongodbatlas", version = "~> 2.0" }
    kubernetes   = { source = "hashicorp/kubernetes", version = "~> 2.35" }
    helm         = { source = "hashicorp/helm", version = "~> 3.0" }
    random       = { source = "hashicorp/random", version = "~> 3.7" }
  }
}

# MASTER_KEY and KEY_PEPPER: without them no secret opens and no key is found.
resource "random_bytes" "secret" {
  for_each = toset(["MASTER_KEY", "KEY_PEPPER"])
  length   = 32
  lifecycle { prevent_destroy = true }
}

resource "random_password" "database" {
  for_each = toset(["postgres", "mongodb"])
  length   = 40
  special  = false
}

resource "aws_db_instance" "postgres" {
  identifier                = "memory-vault"
  engine                    = "postgres"
  engine_version            = "18"
  instance_class            = var.postgres_class
  allocated_storage         = 50
  max_allocated_storage     = 500
  storage_encrypted         = true
  kms_key_id                = var.kms_key_arn
  multi_az                  = true
  db_name                   = "vault"
  username                  = "vault"
  password                  = random_password.database["postgres"].result
  db_subnet_group_name      = var.subnet_group
  vpc_security_group_ids    = var.security_groups
  backup_retention_period   = 14
  deletion_protection       = true
  final_snapshot_identifier = "memory-vault-final"
}

resource "mongodbatlas_advanced_cluster" "mongodb" {
  project_id                     = var.atlas_project
  name                           = "memory-vault"
  cluster_type                   = "REPLICASET"
  backup_enabled                 = true
  pit_enabled                    = true
  termination_protection_enabled = true
  replication_specs = [{
    region_configs = [{
      provider_name   = "AWS"
      region_name     = var.atlas_region
      priority        = 7
      electable_specs = { instance_size = var.atlas_tier, node_count = 3 }
      auto_scaling    = { disk_gb_enabled = true }
    }]
  }]
}

resource "mongodbatlas_database_user" "vault" {
  project_id         = var.atlas_project
  username           = "vault"
  password           = random_password.database["mongodb"].result
  auth_database_name = "admin"
  roles {
    role_name     = "readWrite"
    database_name = "vault"
  }
}

resource "kubernetes_namespace_v1" "vault" {
  metadata {
    name   = "memory-vault"
    labels = { "pod-security.kubernetes.io/enforce" = "restricted" }
  }
}

locals {
  postgres = aws_db_instance.postgres
  mongodb  = mongodbatlas_advanced_cluster.mongodb.connection_strings.standard_srv
}

resource "kubernetes_secret_v1" "vault" {
  metadata {
    name      = "memory-vault-secrets"
    namespace = kubernetes_namespace_v1.vault.metadata[0].name
  }
  data = {
    DATABASE_URL = "postgres://vault:${local.postgres.password}@${local.postgres.endpoint}/vault?sslmode=no-verify"
    MONGODB_URI  = "${replace(local.mongodb, "mongodb+srv://", "mongodb+srv://vault:${random_password.database["mongodb"].result}@")}/vault"
    MASTER_KEY   = random_bytes.secret["MASTER_KEY"].hex
    KEY_PEPPER   = random_bytes.secret["KEY_PEPPER"].hex
  }
}

resource "helm_release" "vault" {
  name      = "memory-vault"
  namespace = kubernetes_namespace_v1.vault.metadata[0].name
  chart     = var.chart
  values = [yamlencode({
    image    = { repository = var.image }
    settings = { ADMIN_EMAIL = var.admin_email, PUBLIC_URL = "https://${var.host}" }
    secrets  = { name = kubernetes_secret_v1.vault.metadata[0].name }
    ingress  = { host = var.host }
  })]
}
