-- CreateTable
CREATE TABLE "DeviceCount" (
    "tenantId" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "container" BOOLEAN NOT NULL,
    "slot" INTEGER NOT NULL,
    "count" INTEGER NOT NULL,

    PRIMARY KEY ("tenantId", "status", "container", "slot"),
    CONSTRAINT "DeviceCount_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateIndex
CREATE INDEX "DeviceCount_slot_idx" ON "DeviceCount"("slot");

INSERT INTO "DeviceCount" ("tenantId", "status", "container", "slot", "count")
SELECT "tenantId", "status", "infoPlatform" = 'connector', 0, COUNT(*) FROM "Device" GROUP BY 1, 2, 3;

CREATE TRIGGER "Device_count_insert" AFTER INSERT ON "Device" BEGIN
    INSERT INTO "DeviceCount" ("tenantId", "status", "container", "slot", "count")
    VALUES (NEW."tenantId", NEW."status", NEW."infoPlatform" = 'connector', 0, 1)
    ON CONFLICT DO UPDATE SET "count" = "count" + 1;
END;

-- Where the namespace is deleted with its devices, the counts are gone or go too: nothing makes them again.
CREATE TRIGGER "Device_count_delete" AFTER DELETE ON "Device" BEGIN
    UPDATE "DeviceCount" SET "count" = "count" - 1
    WHERE "tenantId" = OLD."tenantId" AND "status" = OLD."status" AND "container" = (OLD."infoPlatform" = 'connector');
END;

CREATE TRIGGER "Device_count_update" AFTER UPDATE OF "tenantId", "status", "infoPlatform" ON "Device"
WHEN (OLD."tenantId", OLD."status", OLD."infoPlatform") <> (NEW."tenantId", NEW."status", NEW."infoPlatform") BEGIN
    UPDATE "DeviceCount" SET "count" = "count" - 1
    WHERE "tenantId" = OLD."tenantId" AND "status" = OLD."status" AND "container" = (OLD."infoPlatform" = 'connector');
    INSERT INTO "DeviceCount" ("tenantId", "status", "container", "slot", "count")
    VALUES (NEW."tenantId", NEW."status", NEW."infoPlatform" = 'connector', 0, 1)
    ON CONFLICT DO UPDATE SET "count" = "count" + 1;
END;
