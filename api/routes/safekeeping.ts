import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg, owner, orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import {
  presentAccountPolicy,
  presentPolicy,
  presentAccountEvent,
  type TypedLine,
} from '#api/present/account.ts'
import { toMicros } from '#api/present/budget.ts'
import { changeAccountPolicy, readAccountPolicy } from '#shared/accounts/policy.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'
import { changeOrgPolicy, effectiveOrgPolicy } from '#shared/org/base/redaction.ts'
import { eraseAccount } from '#shared/accounts/erase-account.ts'
import { receiptKeys } from '#shared/accounts/erasure-receipt.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import {
  findAccountErasure,
  type AccountErasureRow,
} from '#shared/accounts/account-erasures.postgres.ts'
import { presentPage } from '#api/present/page.ts'
import { readPage } from '#shared/core/page.ts'
import { parseStart } from '#shared/core/dates.ts'
import { listAccountEvents, recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { appendEndLine, presentAccountExportLine } from '#api/present/account-export.ts'
import { exportAccountItems } from '#shared/accounts/export-account.ts'

/** The endpoints of `contract/safekeeping.md`: policies, erasure, events, export. */
export function safekeeping(router: Router, backend: ApiBackend): void {
  // Policies of an account, and of one of its organizations.
  endpoint(router, backend, {
    route: 'GET /v1/account/policy',
    auth: owner(),
    async handle({ account }, ctx) {
      ctx.body = presentAccountPolicy(await readAccountPolicy(backend.postgres.query, account))
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/account/policy',
    auth: owner(),
    current: async ({ account }) =>
      presentAccountPolicy(await readAccountPolicy(backend.postgres.query, account)),
    async handle({ account, actor, body, claim }, ctx) {
      const { redaction, retention_days: retentionDays, create_users: createUsers } = body
      const { verbatim, store_response: stored, sessions, tell_absence: tellAbsence } = body
      const { operation } = claim
      const hasFollowUp = await changeAccountPolicy(
        backend,
        { account, actor },
        {
          operation,
          redaction,
          retentionDays,
          createUsers,
          userLimits: {
            requests: body.user_daily_requests,
            tokens: body.user_daily_tokens,
            micros: toMicros(body.user_monthly_dollars),
          },
          traces: { mode: body.traces, days: body.trace_days },
          storage: {
            verbatim,
            responseWithInput: stored && stored === 'with_input',
            coreSessions: sessions && sessions === 'core',
            tellAbsence,
            keepFiles: body.keep_files,
          },
        },
      )
      ctx.body = {
        ...presentAccountPolicy(await readAccountPolicy(backend.postgres.query, account)),
        ...(hasFollowUp && { operation_id: operation }),
      }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/policy',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      ctx.body = presentPolicy(await effectiveOrgPolicy(backend.postgres.query, org.id))
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/orgs/:orgId/policy',
    auth: orgAdmin,
    async current({ orgAdmin }) {
      const { query } = backend.postgres
      const { id } = await requireOrganization(query, orgAdmin.admin, orgAdmin.org)
      return presentPolicy(await effectiveOrgPolicy(query, id))
    },
    async handle({ orgAdmin, body }, ctx) {
      await changeOrgPolicy(backend, orgAdmin, body.redaction)
      const { query } = backend.postgres
      ctx.body = presentPolicy(await effectiveOrgPolicy(query, orgAdmin.org))
    },
  })

  // The erasure of an account, and the receipts of erasures, which are open.
  endpoint(router, backend, {
    route: 'POST /v1/account/erase',
    auth: owner(),
    async handle({ account, keyHash, body, claim }, ctx) {
      const erasureRequest = { id: claim.operation, email: body.email }
      ctx.status = 202
      ctx.body = presentErasure(await eraseAccount(backend, { account, keyHash }, erasureRequest))
    },
  })

  router.get('/v1/receipts/key', ctx => {
    ctx.body = { keys: receiptKeys(backend.config.masterKeys) }
  })

  router.get('/v1/receipts/:receiptId', async ctx => {
    const { receiptId = '' } = ctx.params
    const erasure = isUuid(receiptId)
      ? await findAccountErasure(backend.postgres.query, receiptId)
      : undefined
    if (!erasure)
      throw new Refusal('missing', 'No such receipt', 'Its id was answered to the erasure')
    ctx.body = presentErasure(erasure)
  })

  // The events of an account: what changed it, and by whom.
  endpoint(router, backend, {
    route: 'GET /v1/account/events',
    auth: owner(),
    async handle({ account, query }, ctx) {
      const { action, since: from, limit, cursor } = query
      const since = from === undefined ? undefined : parseStart(from)
      const cursorScope = ['account events', account, action ?? null, since ?? null]
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: cursorScope },
        (before: number | undefined, count) =>
          listAccountEvents(backend.postgres.query, account, {
            action,
            since,
            before,
            limit: count,
          }),
        event => event.position,
      )
      ctx.body = presentPage(page, presentAccountEvent)
    },
  })

  // Streams everything that is stored of an account as JSON lines.
  endpoint(router, backend, {
    route: 'GET /v1/account/export',
    auth: owner(),
    async handle({ account, actor }, ctx) {
      const event = { account, actor, action: 'account.exported', subject: 'account' } as const
      await recordAccountEvent(backend.postgres, event)
      await backend.callLog.settled()
      await sendNdjson(ctx, appendEndLine(presentLines(exportAccountItems(backend, account))))
    },
  })
}

const presentErasure = ({ id, requestedAt, finishedAt, receipt }: AccountErasureRow) => ({
  receipt_id: id,
  status: finishedAt ? 'erased' : 'erasing',
  receipt_path: `/v1/receipts/${id}`,
  requested_at: requestedAt.toISOString(),
  finished_at: finishedAt?.toISOString() ?? null,
  receipt,
})

async function* presentLines(
  records: ReturnType<typeof exportAccountItems>,
): AsyncGenerator<TypedLine> {
  for await (const record of records) yield presentAccountExportLine(record)
}
