-- DropIndex
DROP INDEX "Device_tenantId_status_lastSeen_uid_infoPlatform_idx";

-- AlterTable
ALTER TABLE "User" ADD COLUMN "keptToken" TEXT;
ALTER TABLE "User" ADD COLUMN "keptUntil" DATETIME;

-- AlterTable
ALTER TABLE "MailToken" ADD COLUMN "address" TEXT;

-- CreateIndex
CREATE INDEX "Device_tenantId_status_lastSeen_uid_infoPlatform_offline_idx" ON "Device"("tenantId", "status", "lastSeen", "uid", "infoPlatform", "offline");

-- Made anew to be the last: where several indexes do, SQLite takes that one, and devices are counted by the smallest.
DROP INDEX "Device_tenantId_status_infoPlatform_idx";
CREATE INDEX "Device_tenantId_status_infoPlatform_idx" ON "Device"("tenantId", "status", "infoPlatform");
