import { requireNoMemoryNearMiss } from '#api/edge/message-switch.ts'
import { callSwitches, narrowPermissions, resolveTellsAbsence } from '#api/proxy/switches.ts'
import type { Router } from '@koa/router'
import { blockTokens, recalls } from '#shared/core/metrics.ts'
import { conditionOf } from '#shared/domain/filter.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey, memoryKeyOfBody } from '#api/edge/auth.ts'
import { openAskedVaults } from '#api/edge/asked-vaults.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import {
  presentBlockLine,
  breakDownResults,
  presentSearchResult,
  presentDateSearchRow,
} from '#api/present/memory.ts'
import { presentDebt } from '#api/present/debt.ts'
import {
  embeddingModelForRequest,
  resolveSession,
  requestedEmbeddingModel,
  resolveSessionSpace,
  sendInputNotes,
} from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { logRecall } from '#api/edge/log-recall.ts'
import {
  traceOfContext,
  traceOfDatedRows,
  traceOfResults,
} from '#shared/vault/read/traces/recall-trace.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import {
  requireReadableVault,
  requireRetrievePermission,
  type Caller,
} from '#shared/access/caller.ts'
import { parseAsOf, momentOf } from '#shared/vault/read/search/as-of.ts'
import { withContent } from '#shared/domain/message-content.ts'
import { prepareContext } from '#shared/vault/read/prepare/prepare.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'
import { recallReranked } from '#shared/vault/read/search/recall.ts'
import { sharedIdsOf } from '#shared/vault/read/search/retrieval-trail.ts'
import { searchDates } from '#shared/vault/read/lists/date-search.ts'
import { tiers as allTiers } from '#shared/domain/memory.ts'
import { parseTimeWindow, windowAsOf } from '#shared/vault/read/lists/time-window.ts'
import { warmUp } from '#shared/vault/read/search/warmup.ts'

const countRecall = (way: string, { permissions }: Caller, isFound: boolean): void =>
  recalls.inc({ way, status: permissions.retrieve ? (isFound ? 'ok' : 'none') : 'off' })

/** The endpoints of `contract/memory.md` that search. */
export function memorySearch(router: Router, backend: ApiBackend): void {
  // The context block for a prompt: memories of core and session on a conversation's last turns.
  endpoint(router, backend, {
    route: 'POST /v1/memory/prepare',
    auth: memoryKeyOfBody(requireReadableVault),
    // Without the right to read the answer is empty, and needs no balance.
    admit: ({ caller }) => caller.permissions.retrieve && requireBalance(caller),
    async handle({ caller, body, query, startedAt, notes }, ctx) {
      requireNoMemoryNearMiss(body.messages, notes)
      const namedModels = [body.embeddings, query.embeddings] as const
      const asked = await openAskedVaults(ctx, backend, caller, body.vaults, { notes, namedModels })
      sendInputNotes(ctx, notes)
      const switches = callSwitches(ctx.headers, query, body)
      const { retrieve } = narrowPermissions(caller.permissions, switches)
      const { session } = resolveSessionSpace(ctx, caller.keyRow.storage, {
        inBody: body.session_id,
        query,
      })

      const messages = body.messages.map(withContent)
      const embeddings = embeddingModelForRequest(ctx, caller, ...namedModels)
      const asOf = parseAsOf(body.as_of)
      const prepared = retrieve
        ? await prepareContext(backend, asked, {
            messages,
            session,
            embeddings,
            density: body.density,
            limit: body.context_limit,
            tiers: body.tiers,
            importance: body.importance,
            condition: conditionOf(body),
            minScore: body.min_relevance,
            asOf,
            tellsAbsence: resolveTellsAbsence(switches, caller.keyRow.storage),
          })
        : undefined
      const { context, memories, ranking, recalledTokens, contextTokens, confidence, abstained } =
        prepared ?? nothingPrepared
      const recalledAt = performance.now()
      recordRead(backend, caller, { kind: 'prepare', tokens: recalledTokens, session })
      countRecall('prepare', caller, memories > 0)
      if (context !== null) blockTokens.observe({ way: 'prepare' }, contextTokens)
      if (prepared)
        logRecall(ctx, backend, caller, {
          way: 'prepare',
          session,
          embeddings,
          asOf,
          startedAt,
          recalledAt,
          question: messages.findLast(({ role }) => role === 'user'),
          trace: () => traceOfContext(prepared),
        })

      ctx.body = {
        context,
        ...(asked.searched && { vaults: asked.searched }),
        memories_found: memories,
        memories: ranking.map(presentBlockLine),
        confidence: Math.round(confidence * 100) / 100,
        abstained,
        memory_tokens: contextTokens,
        retrieval_tokens: recalledTokens,
        tokens_billed: recalledTokens,
        metrics: { total_ms: Math.round((performance.now() - startedAt) * 10) / 10 },
        reflection: presentDebt(reflectionDebt(caller.keyRow)),
      }
    },
  })

  // Searches the core vault, or with a session that session.
  endpoint(router, backend, {
    route: 'POST /v1/memory/search',
    auth: memoryKeyOfBody(requireReadableVault),
    admit: ({ caller }) => caller.permissions.retrieve && requireBalance(caller),
    async handle({ caller, body, query: parameters, startedAt, notes }, ctx) {
      const { query, limit, tiers, importance } = body
      const asOf = parseAsOf(body.as_of)
      const session = resolveSession(ctx, body.session_id, parameters.session_id)

      const question = {
        text: query,
        limit,
        tiers,
        importance,
        condition: conditionOf(body),
        minScore: body.min_relevance,
        asOf,
      }
      let matchingMemories = 0
      const namedModels = [body.embeddings, parameters.embeddings] as const
      const asked = await openAskedVaults(ctx, backend, caller, body.vaults, { notes, namedModels })
      const embeddings = embeddingModelForRequest(ctx, caller, ...namedModels)
      const results = caller.permissions.retrieve
        ? await recallReranked(backend, asked, {
            ...question,
            onMatchCount: count => (matchingMemories += count),
            sessions: [session],
            embeddings,
            relevantOnly: false,
          })
        : []
      const recalledAt = performance.now()
      if (asked.memberScope && caller.permissions.retrieve) {
        const returned = sharedIdsOf(results.map(({ memory }) => memory))
        backend.retrievals.record(asked.memberScope, { request: 'search', returned, question })
      }
      const now = momentOf(backend, asOf)
      const { windows, tiers: tierBreakdown, tokens } = breakDownResults(results, now)
      recordRead(backend, caller, { kind: 'search', tokens, session })
      countRecall('search', caller, results.length > 0)
      logRecall(ctx, backend, caller, {
        way: 'search',
        session,
        embeddings,
        asOf,
        startedAt,
        recalledAt,
        question: { role: 'user', content: query },
        trace: () => ({
          ...traceOfResults(results, now),
          leftOutMemories: Math.max(0, matchingMemories - results.length),
        }),
      })

      ctx.body = {
        query,
        sessionId: session,
        memoryKey: caller.maskedKey,
        ...(asked.searched && { vaults: asked.searched }),
        totalMemories: results.length,
        matchingMemories,
        tokenCount: tokens,
        windowBreakdown: windows,
        tierBreakdown,
        memories: results.map(row => presentSearchResult(row, now)),
        reflection: presentDebt(reflectionDebt(caller.keyRow)),
      }
    },
  })

  // The memories of a time window, by time or by relevance.
  endpoint(router, backend, {
    route: 'POST /v1/memory/date-search',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query: parameters, startedAt }, ctx) {
      const { from, to, query, tiers = allTiers, source, order, importance } = body
      const session = resolveSession(ctx, body.session_id, parameters.session_id)
      const namedModels = [body.embeddings, parameters.embeddings] as const
      const asOf = parseAsOf(body.as_of)
      const window = windowAsOf(parseTimeWindow(from, to, backend.now()), asOf)

      const condition = conditionOf(body)
      // Without a query the memories of all spaces are listed by time.
      const embeddings =
        query === undefined
          ? requestedEmbeddingModel(ctx, ...namedModels)
          : embeddingModelForRequest(ctx, caller, ...namedModels)
      const { rows, tokens, truncated, returned } = await searchDates(backend, caller, {
        window,
        session,
        query,
        embeddings,
        tiers,
        source,
        importance,
        condition,
        maxTokens: body.max_tokens,
        order,
      })
      const recalledAt = performance.now()
      // What asks for the private vault alone is no retrieval of shared memory.
      if (caller.memberScope && (source ?? 'org') === 'org') {
        backend.retrievals.record(caller.memberScope, {
          request: 'date-search',
          returned: sharedIdsOf(rows),
          question:
            query === undefined
              ? null
              : {
                  text: query,
                  tiers,
                  importance,
                  condition,
                  // `to` of a search is excluded, that of a window included.
                  within: { from: window.from, to: window.to + 1 },
                  ...(truncated && { limit: rows.length }),
                },
        })
      }
      recordRead(backend, caller, { kind: 'date-search', tokens, session })
      // A range without memories, as the console asks for the debt alone, recalls nothing.
      if (query !== undefined || rows.length > 0) {
        logRecall(ctx, backend, caller, {
          way: 'search',
          session,
          embeddings,
          asOf,
          startedAt,
          recalledAt,
          question: query === undefined ? undefined : { role: 'user', content: query },
          trace: () => traceOfDatedRows(rows, momentOf(backend, asOf)),
        })
      }

      ctx.body = {
        from: new Date(window.from).toISOString(),
        to: new Date(window.to).toISOString(),
        order,
        returned,
        truncated,
        count: rows.length,
        token_count: tokens,
        memories: rows.map(presentDateSearchRow),
        reflection: presentDebt(reflectionDebt(caller.keyRow)),
      }
    },
  })

  // Loads the vault, or a session vault, so that the next search does not wait for it.
  endpoint(router, backend, {
    route: 'POST /v1/memory/warmup',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, body, query, startedAt }, ctx) {
      const { session_id: session, embeddings } = body
      const sessionId = resolveSession(ctx, session, query.session_id)
      const loaded = await warmUp(
        backend,
        caller,
        sessionId,
        embeddingModelForRequest(ctx, caller, embeddings, query.embeddings),
      )
      ctx.body = {
        status: loaded === null ? 'too-large' : 'warm',
        key: caller.maskedKey,
        memories_loaded: loaded ?? 0,
        warmup_ms: Math.round((performance.now() - startedAt) * 10) / 10,
      }
    },
  })
}

/** For a key that may not read. */
const nothingPrepared = {
  context: null,
  memories: 0,
  ranking: [],
  recalledTokens: 0,
  contextTokens: 0,
  confidence: 0,
  abstained: 'off',
} as const
