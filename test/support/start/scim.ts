import type { TestClient } from '#test/support/start/api.ts'

type ScimAnswer = {
  status: number
  headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
  body: any
}

export type ScimClient = (method: string, path: string, body?: unknown) => Promise<ScimAnswer>

/** A client of SCIM with this token. */
export const createScimClient =
  (base: string, token: string): ScimClient =>
  async (method, path, body) => {
    const response = await fetch(`${base}/scim/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/scim+json; charset=utf-8' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const { status, headers } = response
    if (text !== '' && !headers.get('content-type')?.startsWith('application/scim+json'))
      throw new Error(`${method} ${path} answered ${headers.get('content-type')}`)
    return { status, headers, body: text === '' ? undefined : JSON.parse(text) }
  }

/** A directory of an organization: a token that an admin has just made. */
export async function connectDirectory(
  admin: TestClient,
  path: string,
): Promise<{ scim: ScimClient; token: string; id: string }> {
  const { body } = await admin.post(`${path}/scim-tokens`, { description: 'Okta' })
  return { scim: createScimClient(admin.base, body.token), token: body.token, id: body.token_id }
}

/** A PATCH of these operations. */
export const patchOf = (...operations: object[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})
