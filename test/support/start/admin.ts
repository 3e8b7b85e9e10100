import { createCredentials } from '#scripts/create-credentials.ts'
import type { Backend } from '#shared/backend.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'

/** An admin credential that expires in a day, and its email. */
export async function buildAdmin(
  { postgres, config }: Backend,
  email = `${crypto.randomUUID()}@example.com`,
): Promise<{ email: string; key: string; memoryKey: string }> {
  const { adminKey, memoryKey } = await postgres.transaction(tx =>
    createCredentials(tx, config.keyPepper, {
      email,
      keyName: 'test',
      keyLifetimeDays: null,
      adminLifetimeDays: 1,
      paymentMethod: 'card',
      balance: null,
    }),
  )
  return { email, key: adminKey!, memoryKey }
}

/** Creates an organization. @returns a client of its admin, and the path of the organization. */
export async function buildOrg(
  backend: Backend,
  base: string,
): Promise<{
  admin: TestClient
  key: string
  org: string
  path: string
  orgKey: string
  email: string
}> {
  const { key, email } = await buildAdmin(backend)
  const admin = createTestClient(base, key)
  const { body } = await admin.post('/v1/orgs', { name: 'Acme' })
  const { org_id: org, org_key: orgKey } = body
  return { admin, key, org, path: `/v1/orgs/${org}`, orgKey, email }
}
