-- oldest-beside: 0002_access_ends
-- AlterTable
ALTER TABLE "Member" ADD COLUMN     "accessExpiresAt" TIMESTAMP(3);

-- AlterTable
ALTER TABLE "PublicKey" ADD COLUMN     "expiresAt" TIMESTAMP(3),
ADD COLUMN     "ownerId" TEXT;

-- AlterTable
ALTER TABLE "FirewallRule" ADD COLUMN     "expiresAt" TIMESTAMP(3);
