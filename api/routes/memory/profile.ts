import { createHash } from 'node:crypto'
import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { resolveSession } from '#api/edge/request.ts'
import { presentPage } from '#api/present/page.ts'
import { presentProfileEntry } from '#api/present/profile-entry.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { Refusal } from '#shared/core/errors.ts'
import { suggestName } from '#shared/core/suggest-name.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { renderProfile } from '#shared/search/profile/render-profile.ts'
import { profileKinds, type ProfileKind } from '#shared/domain/profile-kinds.ts'
import { parseAsOf } from '#shared/vault/read/search/as-of.ts'
import { readProfile, type ProfileRow } from '#shared/vault/read/prepare/read-profile.ts'
import { recordPrepared } from '#shared/vault/read/search/retrieval-trail.ts'

/** What the user has said of themselves and for good, as quotes. */
export function profile(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/memory/profile',
    auth: memoryKey(requireRetrievePermission, requireBalance),
    async handle({ caller, query }, ctx) {
      const session = resolveSession(ctx, undefined, query.session_id)
      const page = await readProfile(backend, caller, {
        session,
        kinds: parseKinds(query.kinds),
        current: query.current,
        asOf: parseAsOf(query.as_of),
        limit: query.limit,
        cursor: query.cursor,
      })
      recordPrepared(backend, caller, sharedRows(page.rows), null)

      const text = renderProfile(page.rows)
      const content = { text, ...presentPage(page, presentProfileEntry) }
      const tag = createHash('sha256').update(JSON.stringify(content)).digest('base64url')
      const version = tag.slice(0, 22)
      ctx.set('ETag', `"${version}"`)
      if (ctx.get('If-None-Match') === `"${version}"`) return void (ctx.status = 304)
      const tokens = text === null ? 0 : countTokens(text)
      recordRead(backend, caller, { kind: 'profile', tokens, session })
      ctx.body = { version, text_tokens: tokens, ...content }
    },
  })
}

/** Each shared memory once. */
const sharedRows = (rows: readonly ProfileRow[]): { id: string; tags: readonly string[] }[] => [
  ...new Map(
    rows.flatMap(({ memory, tags }) => (tags ? [[memory, { id: memory, tags }] as const] : [])),
  ).values(),
]

/** @throws Refusal `invalid` for a name that is no kind. */
function parseKinds(text: string | undefined): readonly ProfileKind[] | undefined {
  if (text === undefined) return undefined
  const names = [...new Set(text.split(',').map(name => name.trim().toLowerCase()))]
  return profileKinds.filter(kind => names.includes(kind)).concat(names.flatMap(refuseUnknown))
}

function refuseUnknown(name: string): never[] {
  if (profileKinds.includes(name as ProfileKind)) return []
  const nearest = suggestName(name, [...profileKinds])
  throw new Refusal(
    'invalid',
    `kinds has no ${name === '' ? 'empty name' : name.slice(0, 64)}`,
    nearest ? `did you mean ${nearest}?` : `known kinds: ${profileKinds.join(', ')}`,
  )
}
