-- oldest-beside: 0005_tags
-- A tag becomes a row, so that its rename and its deletion change one row.
-- CreateTable
CREATE TABLE "Tag" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT,
    "name" TEXT NOT NULL,
    CONSTRAINT "Tag_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "DeviceTagUse" (
    "deviceUid" TEXT NOT NULL,
    "tenantId" TEXT NOT NULL,
    "tagId" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "creationKey" TEXT,

    PRIMARY KEY ("deviceUid", "tagId"),
    CONSTRAINT "DeviceTagUse_deviceUid_fkey" FOREIGN KEY ("deviceUid") REFERENCES "Device" ("uid") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "DeviceTagUse_tagId_fkey" FOREIGN KEY ("tagId") REFERENCES "Tag" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "PublicKeyTagUse" (
    "tenantId" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "tagId" TEXT NOT NULL,
    "position" INTEGER NOT NULL,

    PRIMARY KEY ("tenantId", "fingerprint", "tagId"),
    CONSTRAINT "PublicKeyTagUse_tenantId_fingerprint_fkey" FOREIGN KEY ("tenantId", "fingerprint") REFERENCES "PublicKey" ("tenantId", "fingerprint") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "PublicKeyTagUse_tagId_fkey" FOREIGN KEY ("tagId") REFERENCES "Tag" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "FirewallRuleTagUse" (
    "tenantId" TEXT NOT NULL,
    "ruleId" INTEGER NOT NULL,
    "tagId" TEXT NOT NULL,
    "position" INTEGER NOT NULL,

    PRIMARY KEY ("tenantId", "ruleId", "tagId"),
    CONSTRAINT "FirewallRuleTagUse_tenantId_ruleId_fkey" FOREIGN KEY ("tenantId", "ruleId") REFERENCES "FirewallRule" ("tenantId", "id") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "FirewallRuleTagUse_tagId_fkey" FOREIGN KEY ("tagId") REFERENCES "Tag" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateIndex
CREATE UNIQUE INDEX "Tag_tenantId_name_key" ON "Tag"("tenantId", "name");

-- CreateIndex
CREATE INDEX "DeviceTagUse_tagId_deviceUid_idx" ON "DeviceTagUse"("tagId", "deviceUid");

-- CreateIndex
CREATE UNIQUE INDEX "DeviceTagUse_tenantId_creationKey_key" ON "DeviceTagUse"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "PublicKeyTagUse_tagId_fingerprint_idx" ON "PublicKeyTagUse"("tagId", "fingerprint");

-- CreateIndex
CREATE INDEX "FirewallRuleTagUse_tagId_ruleId_idx" ON "FirewallRuleTagUse"("tagId", "ruleId");

-- Every tag in use gets a row, and the tags of devices, keys and rules refer to it.
INSERT INTO "Tag" ("id", "tenantId", "name")
SELECT lower(hex(randomblob(16))), "tenantId", "tag" FROM (
    SELECT "tenantId", "tag" FROM "DeviceTag"
    UNION SELECT "tenantId", "tag" FROM "PublicKeyTag"
    UNION SELECT "tenantId", "tag" FROM "FirewallRuleTag"
) AS "used";

INSERT INTO "DeviceTagUse" ("deviceUid", "tenantId", "tagId", "position", "creationKey")
SELECT "deviceUid", "DeviceTag"."tenantId", "Tag"."id", "position", "creationKey"
FROM "DeviceTag" JOIN "Tag" ON "Tag"."tenantId" = "DeviceTag"."tenantId" AND "Tag"."name" = "DeviceTag"."tag";

INSERT INTO "PublicKeyTagUse" ("tenantId", "fingerprint", "tagId", "position")
SELECT "PublicKeyTag"."tenantId", "fingerprint", "Tag"."id", "position"
FROM "PublicKeyTag" JOIN "Tag" ON "Tag"."tenantId" = "PublicKeyTag"."tenantId" AND "Tag"."name" = "PublicKeyTag"."tag";

INSERT INTO "FirewallRuleTagUse" ("tenantId", "ruleId", "tagId", "position")
SELECT "FirewallRuleTag"."tenantId", "ruleId", "Tag"."id", "position"
FROM "FirewallRuleTag" JOIN "Tag" ON "Tag"."tenantId" = "FirewallRuleTag"."tenantId"
    AND "Tag"."name" = "FirewallRuleTag"."tag";

-- DropTable
DROP TABLE "DeviceTag";

-- DropTable
DROP TABLE "PublicKeyTag";

-- DropTable
DROP TABLE "FirewallRuleTag";

-- The uses of tags with the names of the tags. A deleted tag has no namespace, so its uses are not part of the views.
CREATE VIEW "DeviceTag" AS
SELECT "DeviceTagUse"."deviceUid", "Tag"."tenantId", "Tag"."name" AS "tag", "DeviceTagUse"."position",
    "DeviceTagUse"."creationKey"
FROM "DeviceTagUse" JOIN "Tag" ON "Tag"."id" = "DeviceTagUse"."tagId" AND "Tag"."tenantId" IS NOT NULL;

CREATE VIEW "PublicKeyTag" AS
SELECT "PublicKeyTagUse"."tenantId", "PublicKeyTagUse"."fingerprint", "Tag"."name" AS "tag", "PublicKeyTagUse"."position"
FROM "PublicKeyTagUse" JOIN "Tag" ON "Tag"."id" = "PublicKeyTagUse"."tagId"
    AND "Tag"."tenantId" = "PublicKeyTagUse"."tenantId";

CREATE VIEW "FirewallRuleTag" AS
SELECT "FirewallRuleTagUse"."tenantId", "FirewallRuleTagUse"."ruleId", "Tag"."name" AS "tag",
    "FirewallRuleTagUse"."position"
FROM "FirewallRuleTagUse" JOIN "Tag" ON "Tag"."id" = "FirewallRuleTagUse"."tagId"
    AND "Tag"."tenantId" = "FirewallRuleTagUse"."tenantId";
