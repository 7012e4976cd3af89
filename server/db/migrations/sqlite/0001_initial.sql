-- oldest-beside: 0001_initial
-- CreateTable
CREATE TABLE "User" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "status" TEXT NOT NULL DEFAULT 'confirmed',
    "origin" TEXT NOT NULL DEFAULT 'local',
    "username" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "recoveryEmail" TEXT NOT NULL DEFAULT '',
    "passwordHash" TEXT NOT NULL,
    "mfaSecret" TEXT,
    "mfaLastStep" INTEGER,
    "tokenVersion" INTEGER NOT NULL DEFAULT 0,
    "keptToken" TEXT,
    "keptUntil" DATETIME,
    "emailMarketing" BOOLEAN NOT NULL DEFAULT false,
    "maxNamespaces" INTEGER NOT NULL DEFAULT -1,
    "preferredTenantId" TEXT,
    "createdAt" DATETIME NOT NULL,
    "lastLogin" DATETIME
);

-- CreateTable
CREATE TABLE "RecoveryCode" (
    "userId" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "disablesUntil" DATETIME,

    PRIMARY KEY ("userId", "digest"),
    CONSTRAINT "RecoveryCode_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "MfaChallenge" (
    "digest" TEXT NOT NULL PRIMARY KEY,
    "userId" TEXT NOT NULL,
    "expiresAt" DATETIME NOT NULL,
    CONSTRAINT "MfaChallenge_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "LoginFailure" (
    "source" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "lockedUntil" DATETIME,
    "expiresAt" DATETIME NOT NULL,

    PRIMARY KEY ("source", "subject")
);

-- CreateTable
CREATE TABLE "RetiredTenant" (
    "tenantId" TEXT NOT NULL PRIMARY KEY
);

-- CreateTable
CREATE TABLE "SigningKey" (
    "kid" TEXT NOT NULL PRIMARY KEY,
    "sealed" TEXT NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "retiredAt" DATETIME
);

-- CreateTable
CREATE TABLE "AuditEntry" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "tenantId" TEXT,
    "at" DATETIME NOT NULL,
    "requestId" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "actorKind" TEXT NOT NULL,
    "actorId" TEXT NOT NULL,
    "actorName" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "objectKind" TEXT NOT NULL,
    "objectId" TEXT NOT NULL,
    "before" TEXT,
    "after" TEXT,
    "declaredBy" TEXT
);

-- CreateTable
CREATE TABLE "RateLimit" (
    "key" TEXT NOT NULL PRIMARY KEY,
    "count" INTEGER NOT NULL,
    "endsAt" BIGINT NOT NULL
);

-- CreateTable
CREATE TABLE "Namespace" (
    "tenantId" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "ownerId" TEXT NOT NULL,
    "type" TEXT NOT NULL DEFAULT 'team',
    "sessionRecord" BOOLEAN NOT NULL DEFAULT true,
    "connectionAnnouncement" TEXT NOT NULL DEFAULT '',
    "deviceProof" TEXT NOT NULL DEFAULT 'optional',
    "sessionMaxMinutes" INTEGER NOT NULL DEFAULT 0,
    "sessionIdleMinutes" INTEGER NOT NULL DEFAULT 0,
    "sessionRecordMode" TEXT NOT NULL DEFAULT 'default',
    "sessionRecordMegabytes" INTEGER NOT NULL DEFAULT 0,
    "sshForwarding" TEXT NOT NULL DEFAULT '[]',
    "maxDevices" INTEGER NOT NULL DEFAULT -1,
    "createdAt" DATETIME NOT NULL,
    "creationKey" TEXT,
    "declaredBy" TEXT,
    CONSTRAINT "Namespace_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "Member" (
    "tenantId" TEXT NOT NULL,
    "userId" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'accepted',
    "addedAt" DATETIME NOT NULL,
    "expiresAt" DATETIME,
    "invitation" TEXT,
    "invitationMailed" BOOLEAN NOT NULL DEFAULT false,
    "creationKey" TEXT,
    "declaredBy" TEXT,

    PRIMARY KEY ("tenantId", "userId"),
    CONSTRAINT "Member_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "Member_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "Device" (
    "uid" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "mac" TEXT NOT NULL,
    "infoId" TEXT NOT NULL,
    "infoPrettyName" TEXT NOT NULL,
    "infoVersion" TEXT NOT NULL,
    "infoArch" TEXT NOT NULL,
    "infoPlatform" TEXT NOT NULL,
    "publicKey" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "statusUpdatedAt" DATETIME NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "lastSeen" DATETIME NOT NULL,
    "offline" BOOLEAN NOT NULL DEFAULT false,
    "remoteAddr" TEXT NOT NULL DEFAULT '',
    "latitude" REAL NOT NULL DEFAULT 0,
    "longitude" REAL NOT NULL DEFAULT 0,
    "publicUrl" BOOLEAN NOT NULL DEFAULT false,
    "declaredBy" TEXT,
    "tagsDeclaredBy" TEXT,
    "instanceId" TEXT,
    "tunnelId" TEXT,
    "transport" INTEGER,
    CONSTRAINT "Device_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

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

-- CreateTable
CREATE TABLE "DeviceTag" (
    "deviceUid" TEXT NOT NULL,
    "tenantId" TEXT NOT NULL,
    "tag" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "creationKey" TEXT,

    PRIMARY KEY ("deviceUid", "tag"),
    CONSTRAINT "DeviceTag_deviceUid_fkey" FOREIGN KEY ("deviceUid") REFERENCES "Device" ("uid") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "PublicKey" (
    "tenantId" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "data" TEXT NOT NULL,
    "username" TEXT NOT NULL,
    "hostname" TEXT,
    "createdAt" DATETIME NOT NULL,
    "creationKey" TEXT,
    "declaredBy" TEXT,

    PRIMARY KEY ("tenantId", "fingerprint"),
    CONSTRAINT "PublicKey_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "PublicKeyTag" (
    "tenantId" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "tag" TEXT NOT NULL,
    "position" INTEGER NOT NULL,

    PRIMARY KEY ("tenantId", "fingerprint", "tag"),
    CONSTRAINT "PublicKeyTag_tenantId_fingerprint_fkey" FOREIGN KEY ("tenantId", "fingerprint") REFERENCES "PublicKey" ("tenantId", "fingerprint") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "FirewallRule" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "tenantId" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "active" BOOLEAN NOT NULL,
    "priority" INTEGER NOT NULL,
    "sourceIp" TEXT NOT NULL,
    "username" TEXT NOT NULL,
    "hostname" TEXT,
    "creationKey" TEXT,
    "declaredBy" TEXT,
    CONSTRAINT "FirewallRule_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "FirewallRuleTag" (
    "tenantId" TEXT NOT NULL,
    "ruleId" INTEGER NOT NULL,
    "tag" TEXT NOT NULL,
    "position" INTEGER NOT NULL,

    PRIMARY KEY ("tenantId", "ruleId", "tag"),
    CONSTRAINT "FirewallRuleTag_tenantId_ruleId_fkey" FOREIGN KEY ("tenantId", "ruleId") REFERENCES "FirewallRule" ("tenantId", "id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "PrivateKey" (
    "fingerprint" TEXT NOT NULL PRIMARY KEY,
    "sealed" TEXT NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "expiresAt" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "Instance" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "peerUrl" TEXT,
    "lastSeen" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "TerminalTicket" (
    "digest" TEXT NOT NULL PRIMARY KEY,
    "sealed" TEXT NOT NULL,
    "expiresAt" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "ApiKey" (
    "digest" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "createdBy" TEXT NOT NULL,
    "expiresIn" BIGINT NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "updatedAt" DATETIME NOT NULL,
    "creationKey" TEXT,
    "declaredBy" TEXT,
    CONSTRAINT "ApiKey_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "MailToken" (
    "userId" TEXT NOT NULL,
    "purpose" TEXT NOT NULL,
    "address" TEXT,
    "digest" TEXT NOT NULL,
    "expiresAt" DATETIME NOT NULL,

    PRIMARY KEY ("userId", "purpose"),
    CONSTRAINT "MailToken_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "OutgoingMail" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "sealed" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "createdAt" DATETIME NOT NULL,
    "dueAt" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "MfaReset" (
    "mainDigest" TEXT NOT NULL PRIMARY KEY,
    "recoveryDigest" TEXT NOT NULL,
    "userId" TEXT NOT NULL,
    "expiresAt" DATETIME NOT NULL,
    CONSTRAINT "MfaReset_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "SamlIdentity" (
    "issuer" TEXT NOT NULL,
    "nameId" TEXT NOT NULL,
    "userId" TEXT NOT NULL,

    PRIMARY KEY ("issuer", "nameId"),
    CONSTRAINT "SamlIdentity_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "UsedSamlMessage" (
    "digest" TEXT NOT NULL PRIMARY KEY,
    "expiresAt" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "Session" (
    "uid" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT NOT NULL,
    "deviceUid" TEXT NOT NULL,
    "username" TEXT NOT NULL,
    "ipAddress" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "term" TEXT NOT NULL,
    "latitude" REAL NOT NULL DEFAULT 0,
    "longitude" REAL NOT NULL DEFAULT 0,
    "startedAt" DATETIME NOT NULL,
    "lastSeen" DATETIME NOT NULL,
    "closedAt" DATETIME,
    "authenticated" BOOLEAN NOT NULL DEFAULT false,
    "recorded" BOOLEAN NOT NULL DEFAULT false,
    "recordedSize" INTEGER NOT NULL DEFAULT 0,
    "records" INTEGER NOT NULL DEFAULT 0,
    "events" INTEGER NOT NULL DEFAULT 0,
    "boundedEvents" INTEGER NOT NULL DEFAULT 0,
    "viaGateway" BOOLEAN NOT NULL DEFAULT false,
    "keyFingerprint" TEXT,
    "userId" TEXT,
    "instanceId" TEXT,
    CONSTRAINT "Session_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "Session_deviceUid_fkey" FOREIGN KEY ("deviceUid") REFERENCES "Device" ("uid") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "SessionRecord" (
    "sessionUid" TEXT NOT NULL,
    "seat" INTEGER NOT NULL,
    "sequence" INTEGER NOT NULL,
    "time" DATETIME NOT NULL,
    "message" TEXT NOT NULL,
    "stream" TEXT NOT NULL DEFAULT 'stdout',
    "width" BIGINT NOT NULL,
    "height" BIGINT NOT NULL,

    PRIMARY KEY ("sessionUid", "seat", "sequence"),
    CONSTRAINT "SessionRecord_sessionUid_fkey" FOREIGN KEY ("sessionUid") REFERENCES "Session" ("uid") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "SessionEvent" (
    "sessionUid" TEXT NOT NULL,
    "sequence" INTEGER NOT NULL,
    "seat" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "at" DATETIME NOT NULL,
    "data" TEXT NOT NULL,

    PRIMARY KEY ("sessionUid", "sequence"),
    CONSTRAINT "SessionEvent_sessionUid_fkey" FOREIGN KEY ("sessionUid") REFERENCES "Session" ("uid") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "Billing" (
    "tenantId" TEXT NOT NULL PRIMARY KEY,
    "customerId" TEXT NOT NULL,
    "subscriptionId" TEXT NOT NULL DEFAULT '',
    "status" TEXT NOT NULL DEFAULT 'inactive',
    "currentPeriodEnd" BIGINT NOT NULL DEFAULT 0,
    "freeDevices" INTEGER NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "updatedAt" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "LedgerCustomer" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "key" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "createdAt" DATETIME NOT NULL
);

-- CreateTable
CREATE TABLE "LedgerPaymentMethod" (
    "customerId" TEXT NOT NULL,
    "id" TEXT NOT NULL,
    "brand" TEXT NOT NULL,
    "last4" TEXT NOT NULL,
    "expMonth" INTEGER NOT NULL,
    "expYear" INTEGER NOT NULL,
    "isDefault" BOOLEAN NOT NULL,
    "attachedAt" DATETIME NOT NULL,

    PRIMARY KEY ("customerId", "id"),
    CONSTRAINT "LedgerPaymentMethod_customerId_fkey" FOREIGN KEY ("customerId") REFERENCES "LedgerCustomer" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "LedgerSubscription" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "key" TEXT NOT NULL,
    "customerId" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "devices" INTEGER NOT NULL,
    "peak" INTEGER NOT NULL,
    "month" INTEGER NOT NULL,
    "periodEnd" DATETIME NOT NULL,
    "createdAt" DATETIME NOT NULL,
    CONSTRAINT "LedgerSubscription_customerId_fkey" FOREIGN KEY ("customerId") REFERENCES "LedgerCustomer" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "LedgerInvoice" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "subscriptionId" TEXT NOT NULL,
    "month" INTEGER NOT NULL,
    "customerId" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "currency" TEXT NOT NULL,
    "amount" BIGINT NOT NULL,
    "devices" INTEGER NOT NULL,
    "createdAt" DATETIME NOT NULL,
    CONSTRAINT "LedgerInvoice_customerId_fkey" FOREIGN KEY ("customerId") REFERENCES "LedgerCustomer" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "LedgerInvoice_subscriptionId_fkey" FOREIGN KEY ("subscriptionId") REFERENCES "LedgerSubscription" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "Tunnel" (
    "address" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT NOT NULL,
    "deviceUid" TEXT NOT NULL,
    "host" TEXT NOT NULL,
    "port" INTEGER NOT NULL,
    "ttl" BIGINT NOT NULL,
    "createdAt" DATETIME NOT NULL,
    "expiresAt" DATETIME NOT NULL,
    "creationKey" TEXT,
    CONSTRAINT "Tunnel_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "Tunnel_deviceUid_fkey" FOREIGN KEY ("deviceUid") REFERENCES "Device" ("uid") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "Connector" (
    "uid" TEXT NOT NULL PRIMARY KEY,
    "tenantId" TEXT NOT NULL,
    "enable" BOOLEAN NOT NULL,
    "secure" BOOLEAN NOT NULL,
    "address" TEXT NOT NULL,
    "port" INTEGER NOT NULL,
    "sealedTls" TEXT,
    "tlsDigest" TEXT,
    "createdAt" DATETIME NOT NULL,
    CONSTRAINT "Connector_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES "Namespace" ("tenantId") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "Announcement" (
    "uuid" TEXT NOT NULL PRIMARY KEY,
    "title" TEXT NOT NULL,
    "content" TEXT NOT NULL,
    "date" DATETIME NOT NULL
);

-- CreateIndex
CREATE UNIQUE INDEX "User_username_key" ON "User"("username");

-- CreateIndex
CREATE UNIQUE INDEX "User_email_key" ON "User"("email");

-- CreateIndex
CREATE INDEX "MfaChallenge_expiresAt_idx" ON "MfaChallenge"("expiresAt");

-- CreateIndex
CREATE INDEX "LoginFailure_expiresAt_idx" ON "LoginFailure"("expiresAt");

-- CreateIndex
CREATE INDEX "AuditEntry_tenantId_id_idx" ON "AuditEntry"("tenantId", "id");

-- CreateIndex
CREATE INDEX "AuditEntry_at_idx" ON "AuditEntry"("at");

-- CreateIndex
CREATE INDEX "RateLimit_endsAt_idx" ON "RateLimit"("endsAt");

-- CreateIndex
CREATE UNIQUE INDEX "Namespace_name_key" ON "Namespace"("name");

-- CreateIndex
CREATE UNIQUE INDEX "Namespace_ownerId_creationKey_key" ON "Namespace"("ownerId", "creationKey");

-- CreateIndex
CREATE UNIQUE INDEX "Member_invitation_key" ON "Member"("invitation");

-- CreateIndex
CREATE INDEX "Member_userId_idx" ON "Member"("userId");

-- CreateIndex
CREATE UNIQUE INDEX "Member_tenantId_creationKey_key" ON "Member"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "Device_tenantId_lastSeen_uid_status_infoPlatform_offline_idx" ON "Device"("tenantId", "lastSeen", "uid", "status", "infoPlatform", "offline");

-- CreateIndex
CREATE INDEX "DeviceTag_tenantId_tag_idx" ON "DeviceTag"("tenantId", "tag");

-- CreateIndex
CREATE UNIQUE INDEX "DeviceTag_tenantId_creationKey_key" ON "DeviceTag"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "PublicKey_tenantId_createdAt_fingerprint_idx" ON "PublicKey"("tenantId", "createdAt", "fingerprint");

-- CreateIndex
CREATE UNIQUE INDEX "PublicKey_tenantId_creationKey_key" ON "PublicKey"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "PublicKeyTag_tenantId_tag_idx" ON "PublicKeyTag"("tenantId", "tag");

-- CreateIndex
CREATE INDEX "FirewallRule_tenantId_priority_id_idx" ON "FirewallRule"("tenantId", "priority", "id");

-- CreateIndex
CREATE UNIQUE INDEX "FirewallRule_tenantId_id_key" ON "FirewallRule"("tenantId", "id");

-- CreateIndex
CREATE UNIQUE INDEX "FirewallRule_tenantId_creationKey_key" ON "FirewallRule"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "FirewallRuleTag_tenantId_tag_idx" ON "FirewallRuleTag"("tenantId", "tag");

-- CreateIndex
CREATE INDEX "PrivateKey_expiresAt_idx" ON "PrivateKey"("expiresAt");

-- CreateIndex
CREATE INDEX "ApiKey_tenantId_expiresIn_name_idx" ON "ApiKey"("tenantId", "expiresIn", "name");

-- CreateIndex
CREATE UNIQUE INDEX "ApiKey_tenantId_name_key" ON "ApiKey"("tenantId", "name");

-- CreateIndex
CREATE UNIQUE INDEX "ApiKey_tenantId_creationKey_key" ON "ApiKey"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "MailToken_expiresAt_idx" ON "MailToken"("expiresAt");

-- CreateIndex
CREATE INDEX "OutgoingMail_dueAt_idx" ON "OutgoingMail"("dueAt");

-- CreateIndex
CREATE INDEX "MfaReset_userId_idx" ON "MfaReset"("userId");

-- CreateIndex
CREATE INDEX "MfaReset_expiresAt_idx" ON "MfaReset"("expiresAt");

-- CreateIndex
CREATE INDEX "SamlIdentity_userId_idx" ON "SamlIdentity"("userId");

-- CreateIndex
CREATE INDEX "UsedSamlMessage_expiresAt_idx" ON "UsedSamlMessage"("expiresAt");

-- CreateIndex
CREATE INDEX "Session_tenantId_startedAt_uid_idx" ON "Session"("tenantId", "startedAt", "uid");

-- CreateIndex
CREATE INDEX "Session_tenantId_lastSeen_idx" ON "Session"("tenantId", "lastSeen");

-- CreateIndex
CREATE INDEX "Session_deviceUid_idx" ON "Session"("deviceUid");

-- CreateIndex
CREATE INDEX "Session_recorded_lastSeen_idx" ON "Session"("recorded", "lastSeen");

-- CreateIndex
CREATE INDEX "SessionEvent_sessionUid_seat_type_idx" ON "SessionEvent"("sessionUid", "seat", "type");

-- CreateIndex
CREATE UNIQUE INDEX "Billing_customerId_key" ON "Billing"("customerId");

-- CreateIndex
CREATE UNIQUE INDEX "LedgerCustomer_key_key" ON "LedgerCustomer"("key");

-- CreateIndex
CREATE UNIQUE INDEX "LedgerSubscription_key_key" ON "LedgerSubscription"("key");

-- CreateIndex
CREATE INDEX "LedgerSubscription_customerId_createdAt_idx" ON "LedgerSubscription"("customerId", "createdAt");

-- CreateIndex
CREATE INDEX "LedgerSubscription_status_periodEnd_idx" ON "LedgerSubscription"("status", "periodEnd");

-- CreateIndex
CREATE INDEX "LedgerInvoice_customerId_createdAt_idx" ON "LedgerInvoice"("customerId", "createdAt");

-- CreateIndex
CREATE INDEX "LedgerInvoice_status_createdAt_idx" ON "LedgerInvoice"("status", "createdAt");

-- CreateIndex
CREATE UNIQUE INDEX "LedgerInvoice_subscriptionId_month_key" ON "LedgerInvoice"("subscriptionId", "month");

-- CreateIndex
CREATE INDEX "Tunnel_deviceUid_createdAt_address_expiresAt_idx" ON "Tunnel"("deviceUid", "createdAt", "address", "expiresAt");

-- CreateIndex
CREATE INDEX "Tunnel_expiresAt_idx" ON "Tunnel"("expiresAt");

-- CreateIndex
CREATE UNIQUE INDEX "Tunnel_tenantId_creationKey_key" ON "Tunnel"("tenantId", "creationKey");

-- CreateIndex
CREATE INDEX "Connector_tenantId_createdAt_uid_idx" ON "Connector"("tenantId", "createdAt", "uid");

-- CreateIndex
CREATE INDEX "Connector_tenantId_enable_createdAt_uid_idx" ON "Connector"("tenantId", "enable", "createdAt", "uid");

-- CreateIndex
CREATE INDEX "Announcement_date_uuid_idx" ON "Announcement"("date", "uuid");

-- CreateIndex
CREATE INDEX "MfaChallenge_userId_expiresAt_idx" ON "MfaChallenge"("userId", "expiresAt");

-- CreateIndex
CREATE INDEX "Device_tenantId_name_status_infoPlatform_uid_idx" ON "Device"("tenantId", "name", "status", "infoPlatform", "uid");

-- CreateIndex
CREATE INDEX "Device_tenantId_status_lastSeen_uid_infoPlatform_offline_idx" ON "Device"("tenantId", "status", "lastSeen", "uid", "infoPlatform", "offline");

-- After the other index by status: of several usable indexes SQLite takes the newest, and counting is fastest by the smallest.
-- CreateIndex
CREATE INDEX "Device_tenantId_status_infoPlatform_idx" ON "Device"("tenantId", "status", "infoPlatform");

-- CreateIndex
CREATE INDEX "DeviceCount_slot_idx" ON "DeviceCount"("slot");

-- CreateIndex
CREATE INDEX "Device_tenantId_mac_status_idx" ON "Device"("tenantId", "mac", "status");

-- CreateIndex
CREATE INDEX "TerminalTicket_expiresAt_idx" ON "TerminalTicket"("expiresAt");

-- CreateIndex
CREATE INDEX "Session_instanceId_idx" ON "Session"("instanceId");

-- CreateIndex
CREATE INDEX "Session_tenantId_keyFingerprint_startedAt_uid_idx" ON "Session"("tenantId", "keyFingerprint", "startedAt", "uid");

-- CreateIndex
CREATE INDEX "Session_tenantId_userId_startedAt_uid_idx" ON "Session"("tenantId", "userId", "startedAt", "uid");

-- Counts devices by namespace and status, so that nothing has to count the rows.
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
