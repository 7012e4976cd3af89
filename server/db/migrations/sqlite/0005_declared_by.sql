-- AlterTable
ALTER TABLE "AuditEntry" ADD COLUMN "declaredBy" TEXT;

-- AlterTable
ALTER TABLE "Namespace" ADD COLUMN "declaredBy" TEXT;

-- AlterTable
ALTER TABLE "Member" ADD COLUMN "declaredBy" TEXT;

-- AlterTable
ALTER TABLE "Device" ADD COLUMN "declaredBy" TEXT;
ALTER TABLE "Device" ADD COLUMN "tagsDeclaredBy" TEXT;

-- AlterTable
ALTER TABLE "PublicKey" ADD COLUMN "declaredBy" TEXT;

-- AlterTable
ALTER TABLE "FirewallRule" ADD COLUMN "declaredBy" TEXT;

-- AlterTable
ALTER TABLE "ApiKey" ADD COLUMN "declaredBy" TEXT;
