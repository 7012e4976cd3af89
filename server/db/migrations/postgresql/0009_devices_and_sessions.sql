-- AlterTable
ALTER TABLE "Namespace" ADD COLUMN     "deviceProof" TEXT NOT NULL DEFAULT 'optional',
ADD COLUMN     "sessionIdleMinutes" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "sessionMaxMinutes" INTEGER NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "Session" ADD COLUMN     "boundedEvents" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "keyFingerprint" TEXT,
ADD COLUMN     "userId" TEXT,
ADD COLUMN     "viaGateway" BOOLEAN NOT NULL DEFAULT false;

-- AlterTable
ALTER TABLE "SessionRecord" ADD COLUMN     "stream" TEXT NOT NULL DEFAULT 'stdout';

-- CreateIndex
CREATE INDEX "Session_tenantId_keyFingerprint_startedAt_uid_idx" ON "Session"("tenantId", "keyFingerprint", "startedAt", "uid");

-- CreateIndex
CREATE INDEX "Session_tenantId_userId_startedAt_uid_idx" ON "Session"("tenantId", "userId", "startedAt", "uid");
