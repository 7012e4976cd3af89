-- DropIndex
DROP INDEX "Device_tenantId_name_idx";

-- CreateIndex
CREATE INDEX "Device_tenantId_name_status_infoPlatform_uid_idx" ON "Device"("tenantId", "name", "status", "infoPlatform", "uid");
