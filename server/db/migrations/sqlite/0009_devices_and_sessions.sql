-- AlterTable
ALTER TABLE "Namespace" ADD COLUMN "deviceProof" TEXT NOT NULL DEFAULT 'optional';
ALTER TABLE "Namespace" ADD COLUMN "sessionMaxMinutes" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "Namespace" ADD COLUMN "sessionIdleMinutes" INTEGER NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "Session" ADD COLUMN "boundedEvents" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "Session" ADD COLUMN "viaGateway" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "Session" ADD COLUMN "keyFingerprint" TEXT;
ALTER TABLE "Session" ADD COLUMN "userId" TEXT;

-- AlterTable
ALTER TABLE "SessionRecord" ADD COLUMN "stream" TEXT NOT NULL DEFAULT 'stdout';

-- CreateIndex
CREATE INDEX "Session_tenantId_keyFingerprint_startedAt_uid_idx" ON "Session"("tenantId", "keyFingerprint", "startedAt", "uid");

-- CreateIndex
CREATE INDEX "Session_tenantId_userId_startedAt_uid_idx" ON "Session"("tenantId", "userId", "startedAt", "uid");
