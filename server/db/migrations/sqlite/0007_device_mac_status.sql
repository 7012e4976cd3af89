-- DropIndex
DROP INDEX "Device_tenantId_mac_idx";

-- CreateIndex
CREATE INDEX "Device_tenantId_mac_status_idx" ON "Device"("tenantId", "mac", "status");
