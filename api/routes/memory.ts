import type { Router } from '@koa/router'
import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey, memoryKeyOfBody } from '#api/edge/auth.ts'
import { releaseBody } from '#api/edge/body-budget.ts'
import { clientSignal } from '#api/edge/client-signal.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { conditionOfQuery, idsMax, idsOrMatching } from '#api/edge/memory-filter.ts'
import { presentDebt } from '#api/present/debt.ts'
import {
  embeddingModelForRequest,
  resolveSession,
  resolveSessionSpace,
  sendInputNotes,
} from '#api/edge/request.ts'
import {
  callSwitches,
  narrowPermissions,
  parseShareHeader,
  resolveStoredHalves,
  resolveTtl,
} from '#api/proxy/switches.ts'
import { requireBalance, requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import {
  whyNotStored,
  requireRetrievePermission,
  requireStorePermission,
  requireNothingExpired,
  type Caller,
} from '#shared/access/caller.ts'
import { requireNoMemoryNearMiss } from '#api/edge/message-switch.ts'
import { withContent } from '#shared/domain/message-content.ts'
import { parseMetadata } from '#shared/domain/metadata.ts'
import { parseExpiresAt } from '#shared/domain/expiry.ts'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { qualifiedName } from '#shared/models/resolve-model.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'
import { presentPage } from '#api/present/page.ts'
import { presentListRow, presentProfileEntry, presentExpiry } from '#api/present/memory.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { noSuchKey, reversedSpan } from '#shared/core/refusals.ts'
import { memoryNotFound } from '#shared/vault/read/lists/inspect.mongo.ts'
import { parseAsOf, requireKnown } from '#shared/vault/read/search/as-of.ts'
import { findListedRow, listMemories } from '#shared/vault/read/lists/listing.mongo.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'
import { suggestName } from '#shared/core/describe-input.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { renderProfile } from '#shared/search/profile/render-profile.ts'
import { profileKinds, type ProfileKind } from '#shared/domain/profile-kinds.ts'
import { readProfile, type ProfileRow } from '#shared/vault/read/prepare/read-profile.ts'
import { recordPrepared } from '#shared/vault/read/search/retrieval-trail.ts'
import { listSessions, type ListedSession } from '#shared/vault/read/lists/sessions.postgres.ts'
import { editMemory } from '#shared/vault/edit/edit.ts'
import { giveFeedback } from '#shared/vault/edit/feedback.ts'
import { idsToJudge, idsWithTextsOf } from '#shared/vault/edit/feedback.mongo.ts'
import type { Backend } from '#shared/backend.ts'
import { findKeyAfterPurge } from '#shared/vault/base/expiry-protocol.ts'
import { hashKey, maskKey, parseKey } from '#shared/access/key.ts'
import { countDays } from '#shared/vault/read/lists/counts.mongo.ts'
import { sessionsToErase } from '#shared/vault/base/erasures.postgres.ts'

/** Longest a request with `wait=true` waits for its exchange to be stored. */
const waitMs = 25_000

/** The endpoints of `contract/memory.md` that store, list and change memories. */
export function memory(router: Router, backend: ApiBackend): void {
  // Accepts a finished exchange; it is stored in the background, or with `wait=true` before the answer.
  endpoint(router, backend, {
    route: 'POST /v1/memory/ingest',
    auth: memoryKeyOfBody(),
    admit: ({ caller }) => {
      if (!caller.permissions.store) return
      requireQueueCapacity(caller)
      requireBalance(caller)
    },
    async handle({ caller, query, body, claim, notes }, ctx) {
      const { wait } = query
      requireNoMemoryNearMiss(body.messages, notes)
      sendInputNotes(ctx, notes)
      const switches = callSwitches(ctx.headers, query, body)
      const { store: stores } = narrowPermissions(caller.permissions, switches)
      const ttl = resolveTtl(ctx.headers, query, body)
      const ends = [
        parseExpiresAt(body.expires_at, backend.now()),
        ttl === undefined ? undefined : backend.now() + ttl * 1000,
      ].filter(end => end !== undefined)

      const { operation } = claim
      const exchange = {
        operation,
        session: resolveSessionSpace(ctx, caller.keyRow.storage, { inBody: body.session_id, query })
          .session,
        messages: body.messages.map(withContent),
        model: body.model === undefined ? null : qualifiedName(body.model),
        embeddings: embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
        awaited: wait,
        expiresAt: ends.length > 0 ? Math.min(...ends) : undefined,
        metadata: parseMetadata(body.metadata),
        shares: body.share && parseShareHeader(ctx.headers) !== false,
        stores: resolveStoredHalves(switches, caller.keyRow.storage),
      }
      const accepted = stores
        ? await acceptExchange(backend, caller, { ...exchange, signal: clientSignal(ctx) })
        : nothingAccepted
      const { userTokens, assistantTokens, memories } = accepted
      releaseBody(ctx)
      const stored =
        wait &&
        memories > 0 &&
        (await backend.operationWaiter.waitUntilSettled(caller.account, operation, waitMs)) ===
          'done'
      // The stored memories count in the debt by now.
      const row = stored ? await findKey(backend.postgres.query, caller.keyHash) : undefined

      ctx.status = stored ? 200 : 202
      ctx.body = {
        accepted: memories > 0,
        queued: memories > 0 && !stored,
        operation_id: operation,
        retrieval_tokens: userTokens,
        response_tokens: assistantTokens,
        left_out: accepted.leftOut,
        message: stores
          ? describeOutcome(memories, stored)
          : caller.permissions.store
            ? 'Memory is off for this request, so nothing is stored'
            : whyNotStored(caller)[0],
        reflection: presentDebt(reflectionDebt(row ?? caller.keyRow)),
      }
    },
  })

  // Pages through the core vault and its reflections.
  endpoint(router, backend, {
    route: 'GET /v1/memory/list',
    auth: memoryKey(requireRetrievePermission, requireBalance),
    async handle({ caller, query }, ctx) {
      const from = query.from === undefined ? undefined : parseStart(query.from)
      const to = query.to === undefined ? undefined : parseExclusiveEnd(query.to)
      if (from !== undefined && to !== undefined && from >= to) {
        throw reversedSpan('from', 'to', 'from is the earlier end of the span')
      }
      const asOf = parseAsOf(query.as_of)
      if (from !== undefined && asOf !== undefined) requireKnown(from, asOf)

      const { rows, next, counts } = await listMemories(backend, caller, {
        tier: query.tier,
        limit: query.limit,
        asOf,
        cursor: query.cursor,
        sort: query.sort,
        order: query.order,
        importance: query.min_importance,
        from,
        to,
        search: query.search,
        condition: conditionOfQuery(query),
      })
      const tokens = rows.reduce((sum, row) => sum + row.tokens, 0)
      recordRead(backend, caller, { kind: 'list', tokens, session: null })

      ctx.body = {
        ...presentPage({ rows, next }, presentListRow),
        ...(counts && { tier_counts: { raw: counts[1], tier2: counts[2], tier3: counts[3] } }),
      }
    },
  })

  // Lasting statements of the user about themselves, as quotes.
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

  // Pages through the sessions of a vault.
  endpoint(router, backend, {
    route: 'GET /v1/memory/sessions',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query }, ctx) {
      const { limit, cursor } = query
      const page = await listSessions(backend, caller, { limit, cursor })
      ctx.body = presentPage(page, presentSession)
    },
  })

  // Replaces the text of a memory in place.
  endpoint(router, backend, {
    route: 'POST /v1/memory/edit',
    auth: memoryKey(requireStorePermission),
    async current({ caller, body }) {
      const id = String((body as { memory_id?: unknown }).memory_id).toLowerCase()
      const row = await findListedRow(backend.mongo, caller.scope, id)
      return row && presentListRow(row)
    },
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, claim }, ctx) {
      const { memory_id: id, text, expires_at: end } = body
      const expiresAt = end === null ? null : parseExpiresAt(end, backend.now())

      const { operation } = claim
      const edited = await editMemory(backend, caller, { operation, id, text, expiresAt })

      ctx.body = {
        memory_id: edited.id,
        updated: true,
        date: new Date(edited.at).toISOString(),
        tier: edited.tier,
        importance: edited.importance ?? null,
        token_count: edited.tokens,
        ...presentExpiry(edited),
      }
    },
  })

  // What the owner says of a memory, and of many; of those that are named, with all that have their texts.
  endpoint(router, backend, {
    route: 'POST /v1/memory/:memoryId/feedback',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body: { feedback }, params }, ctx) {
      const named = [params.memoryId.toLowerCase()].filter(isUuid)
      const copies = await idsWithTextsOf(backend.mongo, caller.scope, named, idsMax)
      const ids = await giveFeedback(backend, caller, { ids: copies, feedback })
      if (ids.length === 0) throw memoryNotFound()
      ctx.body = { feedback, count: ids.length, ids, dry_run: false, has_more: false }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/memory/feedback',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body }, ctx) {
      const { feedback, dry_run: isPreview = false } = body
      const { scope } = caller
      const { ids: named, hasMore = false } = await idsOrMatching(body, condition =>
        idsToJudge(backend.mongo, scope, { condition, feedback, max: idsMax + 1 }),
      )
      const wanted = body.ids ? await idsWithTextsOf(backend.mongo, scope, named, idsMax) : named
      const ids = await giveFeedback(backend, caller, { ids: wanted, feedback, isPreview })
      ctx.body = { feedback, count: ids.length, ids, dry_run: isPreview, has_more: hasMore }
    },
  })

  // How much a vault holds and since when: the caller's own, or that of another key of the account.
  endpoint(router, backend, {
    route: 'GET /v1/memory/stats',
    auth: memoryKey(requireNothingExpired),
    async handle({ caller, query }, ctx) {
      await sendStats(ctx, backend, caller, query.by_day)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/memory/:key/stats',
    auth: memoryKey(),
    async handle({ caller }, ctx) {
      const requestedKey = parseKey(String(ctx.params.key))
      const row = requestedKey
        ? await findKeyAfterPurge(backend, hashKey(backend.config.keyPepper, requestedKey.key))
        : undefined
      const isSameAccountKind =
        caller.kind === 'vault' ? row?.kind === 'vault' : row?.vault === caller.scope.vault
      if (!requestedKey || row?.account !== caller.account || !isSameAccountKind) {
        throw noSuchKey('Stats are served for keys of your own account')
      }
      const { vault, epoch, revision } = row
      await sendStats(ctx, backend, {
        maskedKey: maskKey(requestedKey.key),
        scope: { vault, epoch, revision },
      })
    },
  })
}

/** For a key that may not store. */
const nothingAccepted = { userTokens: 0, assistantTokens: 0, memories: 0, leftOut: {} } as const

function describeOutcome(memories: number, stored: boolean): string {
  if (memories === 0) return 'Nothing of it is to be stored'
  const count = formatMemoryCount(memories)
  return stored ? `Stored ${count}` : `Accepted; ${count} will be stored in the background`
}

const formatMemoryCount = (memories: number): string =>
  memories === 1 ? '1 memory' : `${memories} memories`

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

const presentSession = ({ session, memories, first, last, storedAt }: ListedSession) => ({
  session_id: session,
  memories,
  first_at: first.toISOString(),
  last_at: last.toISOString(),
  stored_at: storedAt.toISOString(),
})

/** Days with memories that are answered at most: ten years without a gap. */
const daysMax = 3_660

async function sendStats(
  ctx: Context,
  { memories, mongo, postgres }: Pick<Backend, 'memories' | 'mongo' | 'postgres'>,
  { maskedKey, scope }: Pick<Caller, 'maskedKey' | 'scope'>,
  byDay = false,
): Promise<void> {
  const cleared = await sessionsToErase(postgres.query, scope.vault)
  const [{ memories: count, tokens, oldest, newest, feedback }, days] = await Promise.all([
    memories.stats(scope, cleared),
    byDay ? countDays(mongo, scope, { clearedSessions: cleared, daysMax }) : undefined,
  ])
  ctx.body = {
    key: maskedKey,
    memories: count,
    total_tokens: tokens,
    oldest: oldest === null ? null : new Date(oldest).toISOString(),
    newest: newest === null ? null : new Date(newest).toISOString(),
    feedback,
    ...(days && { by_day: days }),
  }
}
