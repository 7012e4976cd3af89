-- DropIndex
DROP INDEX "Device_tenantId_status_lastSeen_uid_infoPlatform_idx";

-- AlterTable
ALTER TABLE "User" ADD COLUMN "keptToken" TEXT;
ALTER TABLE "User" ADD COLUMN "keptUntil" DATETIME;

-- AlterTable
ALTER TABLE "MailToken" ADD COLUMN "address" TEXT;

-- CreateIndex
CREATE INDEX "Device_tenantId_status_lastSeen_uid_infoPlatform_offline_idx" ON "Device"("tenantId", "status", "lastSeen", "uid", "infoPlatform", "offline");
