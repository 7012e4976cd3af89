-- No device is written between the counting of those that are there and the first trigger. Instances of the version
-- before that still run go on after that, and their devices are counted.
LOCK TABLE "Device" IN SHARE ROW EXCLUSIVE MODE;

-- CreateTable
CREATE TABLE "DeviceCount" (
    "tenantId" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "container" BOOLEAN NOT NULL,
    "slot" INTEGER NOT NULL,
    "count" INTEGER NOT NULL,

    CONSTRAINT "DeviceCount_pkey" PRIMARY KEY ("tenantId","status","container","slot")
);

-- CreateIndex
CREATE INDEX "DeviceCount_slot_idx" ON "DeviceCount"("slot");

-- AddForeignKey
ALTER TABLE "DeviceCount" ADD CONSTRAINT "DeviceCount_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace"("tenantId") ON DELETE CASCADE ON UPDATE CASCADE;

-- Room beside the rows, which change all the time, for their next versions: an update then changes no index.
ALTER TABLE "DeviceCount" SET (fillfactor = 50);

INSERT INTO "DeviceCount" ("tenantId", "status", "container", "slot", "count")
SELECT "tenantId", "status", "infoPlatform" = 'connector', 0, COUNT(*) FROM "Device" GROUP BY 1, 2, 3;

-- Triggers of statements, not of rows: PostgreSQL takes ever longer to change one row again in the same transaction, and
-- the deletion of a namespace, or the choice of devices to keep, changes any number of devices.
CREATE FUNCTION "countInsertedDevices"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "DeviceCount" AS counted ("tenantId", "status", "container", "slot", "count")
    SELECT "tenantId", "status", "infoPlatform" = 'connector', pg_backend_pid(), COUNT(*) FROM inserted GROUP BY 1, 2, 3
    ON CONFLICT ("tenantId", "status", "container", "slot")
    DO UPDATE SET "count" = counted."count" + EXCLUDED."count";
    RETURN NULL;
END $$;

-- A namespace that is deleted with its devices has no counts any more.
CREATE FUNCTION "countDeletedDevices"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "DeviceCount" AS counted ("tenantId", "status", "container", "slot", "count")
    SELECT "tenantId", "status", "infoPlatform" = 'connector', pg_backend_pid(), -COUNT(*) FROM deleted GROUP BY 1, 2, 3
    HAVING EXISTS (SELECT FROM "Namespace" WHERE "Namespace"."tenantId" = deleted."tenantId")
    ON CONFLICT ("tenantId", "status", "container", "slot")
    DO UPDATE SET "count" = counted."count" + EXCLUDED."count";
    RETURN NULL;
END $$;

CREATE FUNCTION "countUpdatedDevices"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "DeviceCount" AS counted ("tenantId", "status", "container", "slot", "count")
    SELECT "tenantId", "status", "infoPlatform" = 'connector', pg_backend_pid(), SUM("change") FROM (
        SELECT "tenantId", "status", "infoPlatform", 1 AS "change" FROM after
        UNION ALL SELECT "tenantId", "status", "infoPlatform", -1 FROM before
    ) AS changed GROUP BY 1, 2, 3 HAVING SUM("change") <> 0
    ON CONFLICT ("tenantId", "status", "container", "slot")
    DO UPDATE SET "count" = counted."count" + EXCLUDED."count";
    RETURN NULL;
END $$;

CREATE TRIGGER "Device_count_insert" AFTER INSERT ON "Device" REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION "countInsertedDevices"();

CREATE TRIGGER "Device_count_delete" AFTER DELETE ON "Device" REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION "countDeletedDevices"();

CREATE TRIGGER "Device_count_update" AFTER UPDATE ON "Device" REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT EXECUTE FUNCTION "countUpdatedDevices"();
