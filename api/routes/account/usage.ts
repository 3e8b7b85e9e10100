import type { Router } from '@koa/router'
import type {
  Moment,
  UsageReportQuery,
  UsageRow as PresentedRow,
} from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey, owner } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentBudgets } from '#api/present/budget.ts'
import { presentPage } from '#api/present/page.ts'
import { presentPrice, presentUsageSums } from '#api/present/usage.ts'
import { budgetsOf } from '#shared/access/budgets.ts'
import { limitSubjectOf } from '#shared/access/caller.ts'
import { findUserKeys } from '#shared/access/key-row.postgres.ts'
import { findKeysById } from '#shared/access/memory-keys.postgres.ts'
import { parseExternalId } from '#shared/access/user-keys.ts'
import { pricesOf } from '#shared/billing/usage-cost.ts'
import {
  positionOf,
  readUsage,
  usageGroups,
  type TokenSums,
  type UsageGroup,
  type UsagePosition,
  type UsageRow,
} from '#shared/billing/usage-report.postgres.ts'
import {
  usageByDay,
  usageByModel,
  type DayUsage,
  type UsageByModel,
} from '#shared/billing/usage-sums.postgres.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'
import { Refusal } from '#shared/core/errors.ts'
import { readPage } from '#shared/core/page.ts'
import { reversedSpan } from '#shared/core/refusals.ts'

/** Usage of one vault, and of the whole account. */
export function accountUsage(router: Router, backend: ApiBackend): void {
  // The usage of a vault in a period: by the caller's key and by the keys it was rotated from.
  endpoint(router, backend, {
    route: 'GET /v1/account/usage',
    auth: memoryKey(),
    async handle({ caller, query }, ctx) {
      const period = parsePeriod(query, backend.now())
      const [sums, days, [budget]] = await Promise.all([
        usageByModel(backend.postgres.query, caller.scope.vault, period),
        query.by_day ? usageByDay(backend.postgres.query, caller.scope.vault, period) : null,
        presentBudgets(backend, [budgetsOf(caller.keyRow, limitSubjectOf(caller))[0]]),
      ])
      const total = (field: Exclude<keyof UsageByModel, 'model'>): number =>
        sums.reduce((sum, row) => sum + row[field], 0)
      ctx.body = {
        key: caller.maskedKey,
        period: presentPeriod(period, query.end),
        total_requests: total('requests'),
        total_input_tokens: total('inputTokens'),
        total_output_tokens: total('outputTokens'),
        total_memory_tokens: total('memoryTokens'),
        budget: budget!,
        by_model: Object.fromEntries(
          sums
            .filter(({ model }) => model !== '')
            .map(({ model, requests, inputTokens }) => [
              model,
              { requests, input_tokens: inputTokens },
            ]),
        ),
        ...(days && { by_day: days.map(presentDay) }),
      }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/account/usage/report',
    auth: owner(),
    async handle({ account, query }, ctx) {
      const groups = parseGroups(query.group)
      await backend.usage.flush()
      const { limit, cursor, ...rest } = query
      // A page after the first ends when the first did, not now.
      type Position = { end: number; row: UsagePosition }
      let period = parsePeriod(query, backend.now())
      let total: TokenSums | undefined
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: ['GET /v1/account/usage/report', account, rest] },
        async (after: Position | undefined, count) => {
          period = parsePeriod(query, after?.end ?? backend.now())
          requireReadablePeriod(period, groups)
          const filter = { ...period, ...filterOf(query) }
          const bounds = { after: after?.row, limit: count }
          const found = await readUsage(backend.postgres.query, account, groups, filter, bounds)
          total = found.total
          return found.rows
        },
        (row): Position => ({ end: period.end.getTime(), row: positionOf(row) }),
      )
      const owners = await findOwners(backend, account, page.rows)
      ctx.body = {
        period: presentPeriod(period, query.end),
        total: presentUsageSums(backend.prices, total!),
        ...presentPage(page, row => ({
          ...presentGroup(row, owners),
          ...presentUsageSums(backend.prices, row),
        })),
        prices: pricesOf(backend.prices, total!.models).map(presentPrice),
      }
    },
  })
}

const dayMs = 24 * 3600 * 1000
const defaultPeriodMs = 30 * dayMs

type Period = { start: Date; end: Date }

/**
 * The period of a request, with its exclusive end.
 *
 * @throws Refusal `invalid` when it ends before it starts.
 */
function parsePeriod(query: { start?: Moment; end?: Moment }, now: number): Period {
  const end = query.end === undefined ? now : parseExclusiveEnd(query.end)
  const start = query.start === undefined ? end - defaultPeriodMs : parseStart(query.start)
  if (start <= end) return { start: new Date(start), end: new Date(end) }
  const hint = query.end === undefined ? 'Without end the period ends now' : 'Swap the two'
  throw reversedSpan('start', 'end', hint)
}

/** A day, or a moment, given as `end` is part of the period. */
const presentPeriod = ({ start, end }: Period, asked: Moment | undefined) => ({
  start: start.toISOString(),
  end: new Date(end.getTime() - (asked === undefined ? 0 : 1)).toISOString(),
})

/** @throws Refusal `invalid` for anything else than a list of groups. */
function parseGroups(text: string): UsageGroup[] {
  const names = text.split(',').map(name => name.trim())
  const unknown = names.find(name => !(usageGroups as readonly string[]).includes(name))
  if (unknown === undefined) return usageGroups.filter(group => names.includes(group))
  throw new Refusal(
    'invalid',
    'group must be a list of names, separated by commas',
    `Known are ${usageGroups.join(', ')}`,
  )
}

const daysMax = 366
/** Sessions are told by single requests, of which there may be millions. */
const sessionDaysMax = 31

function requireReadablePeriod({ start, end }: Period, groups: readonly UsageGroup[]): void {
  const bySession = groups.includes('session')
  const max = bySession ? sessionDaysMax : daysMax
  if (end.getTime() - start.getTime() <= max * dayMs) return
  throw new Refusal(
    'invalid',
    `The period of a report ${bySession ? 'by session ' : ''}has at most ${max} days`,
    'Ask for its parts, one after the other',
  )
}

const filterOf = ({ key_id, external_id, model }: UsageReportQuery) => ({
  key: key_id,
  user: external_id === undefined ? undefined : parseExternalId(external_id, 'external_id'),
  model,
})

type Owners = {
  keys: ReadonlyMap<string, { masked: string; name: string; budget: PresentedRow['budget'] }>
  users: ReadonlyMap<string, PresentedRow['budget']>
}

/** The keys and users of a page, with their budgets. */
async function findOwners(
  backend: ApiBackend,
  account: string,
  rows: readonly UsageRow[],
): Promise<Owners> {
  const { query } = backend.postgres
  const distinct = (name: 'key' | 'user'): string[] => [
    ...new Set(rows.flatMap(row => row[name] ?? [])),
  ]
  const users = distinct('user').map(externalId => ({ account, externalId }))
  const [keys, userKeys] = await Promise.all([
    findKeysById(query, account, distinct('key')),
    findUserKeys(query, users),
  ])
  const budgets = await presentBudgets(backend, [
    ...keys.map(key => budgetsOf(key, key.subject)[0]),
    ...userKeys.map(key => key && budgetsOf(key, key.limitedAs ?? key.hash)[0]),
  ])
  return {
    keys: new Map(
      keys.map(({ id, masked, name }, n) => [id, { masked, name, budget: budgets[n]! }]),
    ),
    users: new Map(users.map(({ externalId }, n) => [externalId, budgets[keys.length + n]!])),
  }
}

function presentGroup(row: UsageRow, { keys, users }: Owners) {
  const key = row.key ? keys.get(row.key) : undefined
  const budget = row.key === undefined ? users.get(row.user ?? '') : key?.budget
  return {
    ...(row.day !== undefined && { day: row.day }),
    ...(row.key !== undefined && {
      key_id: row.key,
      masked_key: key?.masked ?? null,
      key_name: key?.name ?? null,
      org_id: row.org ?? null,
    }),
    ...(row.user !== undefined && { external_id: row.user }),
    ...(row.session !== undefined && { session_id: row.session }),
    ...(row.model !== undefined && { model: row.model || null }),
    ...((row.key !== undefined || row.user !== undefined) && { budget: budget ?? null }),
  }
}

const presentDay = ({ day, requests, inputTokens, outputTokens, memoryTokens }: DayUsage) => ({
  day,
  requests,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  memory_tokens: memoryTokens,
})
