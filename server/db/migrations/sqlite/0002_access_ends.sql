-- oldest-beside: 0002_access_ends
-- AlterTable
ALTER TABLE "Member" ADD COLUMN "accessExpiresAt" DATETIME;

-- AlterTable
ALTER TABLE "PublicKey" ADD COLUMN "expiresAt" DATETIME;
ALTER TABLE "PublicKey" ADD COLUMN "ownerId" TEXT;

-- AlterTable
ALTER TABLE "FirewallRule" ADD COLUMN "expiresAt" DATETIME;
