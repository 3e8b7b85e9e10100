import type { Router, RouterContext } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { authenticateScim } from '#api/edge/auth.ts'
import { readJson } from '#api/edge/body.ts'
import { noteKeyChange } from '#api/edge/endpoint.ts'
import { ScimRefusal, scimMediaType } from '#api/edge/errors.ts'
import { publicOrigin } from '#api/edge/request.ts'
import { parseFilter } from '#api/scim/filter.ts'
import { assignGroup, presentScimGroup, readScimGroup, toDirectoryGroup } from '#api/scim/groups.ts'
import { readPatch, type Assignment } from '#api/scim/patch.ts'
import { describeScim } from '#api/scim/schemas.ts'
import { assignUser, presentScimUser, readScimUser, toDirectoryUser } from '#api/scim/users.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import {
  changeDirectoryUser,
  changeGroup,
  createDirectoryUser,
  createGroup,
  removeGroup,
} from '#shared/org/admin/directory.ts'
import { removeUser } from '#shared/org/admin/user.ts'
import { groupConditions, groupRows } from '#shared/org/base/groups.postgres.ts'
import type { OrgAdmin } from '#shared/org/base/policy-change.ts'
import type { PolicyRows } from '#shared/org/base/policy-rows.postgres.ts'
import { directoryRows, userConditions } from '#shared/org/base/users.postgres.ts'

/** Users or groups. A draft is what a directory writes of one. */
type Kind<Row, Draft> = {
  name: 'User' | 'Group'
  rows: PolicyRows<Row>
  /** What a filter asks by attribute, in SQL. */
  conditions: Readonly<Record<string, string>>
  present: (row: Row, base: string) => object
  read: (body: unknown, before?: Row) => Draft
  toDraft: (row: Row) => Draft
  assign: (draft: Draft, changes: readonly Assignment[]) => Draft
  create: (backend: ApiBackend, scope: OrgAdmin, id: string, draft: Draft) => Promise<Row>
  change: (b: ApiBackend, scope: OrgAdmin, id: string, to: (before: Row) => Draft) => Promise<Row>
  remove: (b: ApiBackend, scope: OrgAdmin, id: string, operation: string) => Promise<void>
}

type Request = { ctx: RouterContext; scope: OrgAdmin; base: string; id: string; body: unknown }

/**
 * SCIM 2.0 (RFC 7643, 7644): a directory keeps the members and groups of one organization, by a token of that organization.
 * What each request does is told in the guide; its bodies and answers are those of the RFC.
 */
export function scim(router: Router, backend: ApiBackend): void {
  type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** Serves a path below `/scim/v2`; what `handle` returns is the body. */
  const serve = (
    method: Method,
    path: string,
    handle: (request: Request) => Promise<object | void>,
  ): void => {
    router[method](`/scim/v2/${path}`, async ctx => {
      const scope = await authenticateScim(ctx, backend)
      const base = `${backend.config.publicUrl ?? publicOrigin(ctx)}/scim/v2`
      const body = ['get', 'delete'].includes(method) ? undefined : await readJson(ctx, 'small')
      try {
        const answer = await handle({ ctx, scope, base, id: ctx.params.id ?? '', body })
        ctx.status = method === 'post' ? 201 : answer ? 200 : 204
        if (answer) ctx.body = answer
        ctx.type = scimMediaType
      } finally {
        if (method !== 'get') noteKeyChange(backend)
      }
    })
  }

  function serveKind<Row extends { id: string; createdAt: Date; updatedAt: Date | null }, Draft>(
    kind: Kind<Row, Draft>,
  ): void {
    const path = `${kind.name}s`
    const one = `${path}/:id`
    const show = ({ ctx, base }: Request, row: Row): object => {
      const [created, lastModified] = [row.createdAt, row.updatedAt ?? row.createdAt]
      const location = `${base}/${path}/${row.id}`
      const meta = { resourceType: kind.name, created, lastModified, location }
      return project(ctx, { ...kind.present(row, base), meta })
    }
    serve('post', path, async request => {
      const row = await kind.create(backend, request.scope, mintId(), kind.read(request.body))
      request.ctx.set('Location', `${request.base}/${path}/${row.id}`)
      return show(request, row)
    })
    serve('get', path, async request => {
      const { ctx, scope } = request
      const filter = oneOf(ctx, 'filter')
      const asked = (filter === undefined ? [] : parseFilter(filter)).map(([name, value]) => {
        if (Object.hasOwn(kind.conditions, name)) return [kind.conditions[name]!, value] as const
        const known = Object.keys(kind.conditions).join(', ')
        throw new ScimRefusal('invalidFilter', `It is not filtered by ${name}`, `Use ${known}`)
      })
      const [startIndex, limit] = readPage(ctx)
      const page = { offset: startIndex - 1, limit }
      const { total, rows } = await kind.rows.search(backend.postgres.query, scope.org, asked, page)
      return list(
        rows.map(row => show(request, row)),
        total,
        startIndex,
      )
    })
    serve('get', one, async request => {
      const { scope, id } = request
      const row = await kind.rows.find(backend.postgres.query, scope.org, id)
      if (!row) throw new Refusal('missing', `No such ${kind.name}`)
      return show(request, row)
    })
    const change = (request: Request, to: (before: Row) => Draft): Promise<object> =>
      kind.change(backend, request.scope, request.id, to).then(row => show(request, row))
    serve('put', one, request => change(request, before => kind.read(request.body, before)))
    serve('patch', one, request => {
      const changes = readPatch(request.body)
      return change(request, before => kind.assign(kind.toDraft(before), changes))
    })
    serve('delete', one, ({ scope, id }) => kind.remove(backend, scope, id, mintId()))
  }

  serveKind({
    name: 'User',
    rows: directoryRows,
    conditions: userConditions,
    present: presentScimUser,
    read: readScimUser,
    toDraft: toDirectoryUser,
    assign: assignUser,
    create: createDirectoryUser,
    change: changeDirectoryUser,
    remove: removeUser,
  })
  serveKind({
    name: 'Group',
    rows: groupRows,
    conditions: groupConditions,
    present: presentScimGroup,
    read: readScimGroup,
    toDraft: toDirectoryGroup,
    assign: assignGroup,
    create: createGroup,
    change: changeGroup,
    remove: removeGroup,
  })

  router.post('/scim/v2/.search', async ctx => {
    await authenticateScim(ctx, backend)
    const schemas = ['urn:ietf:params:scim:api:messages:2.0:Error']
    ctx.status = 501
    ctx.body = {
      schemas,
      status: '501',
      detail: 'Users and groups are searched each for themselves',
    }
    ctx.type = scimMediaType
  })

  serve(
    'get',
    'ServiceProviderConfig',
    async ({ base }) => describeScim(base).ServiceProviderConfig,
  )
  for (const path of ['Schemas', 'ResourceTypes'] as const) {
    serve('get', path, async ({ base }) => list(describeScim(base)[path]))
    serve('get', `${path}/:id`, async ({ base, id }) => {
      const found = describeScim(base)[path].find(one => one.id === id)
      if (!found) throw new Refusal('missing', `No such resource of ${path}`)
      return found
    })
  }
}

const list = (resources: object[], totalResults = resources.length, startIndex = 1) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
  totalResults,
  startIndex,
  itemsPerPage: resources.length,
  Resources: resources,
})

/** A parameter that is given once at most, and not empty. @throws ScimRefusal. */
function oneOf(ctx: RouterContext, name: string): string | undefined {
  const value = ctx.query[name]
  if (Array.isArray(value))
    throw new ScimRefusal('invalidSyntax', `${name} is given more than once`)
  return value?.trim() || undefined
}

/** The first of a page, from 1, and how many: what is below is brought there (RFC 7644, 3.4.2.4). @throws ScimRefusal. */
function readPage(ctx: RouterContext): [startIndex: number, limit: number] {
  const read = (name: string, missing: number): number => {
    const text = oneOf(ctx, name) ?? String(missing)
    if (/^-?\d{1,9}$/.test(text)) return Number(text)
    throw new ScimRefusal('invalidValue', `${name} is no number`)
  }
  return [Math.max(1, read('startIndex', 1)), Math.min(Math.max(0, read('count', 100)), 200)]
}

/** A resource with the attributes that are asked for; `id`, `schemas` and `meta` are always there. */
function project(ctx: RouterContext, resource: object): object {
  const read = (parameter: string): string[] | undefined =>
    oneOf(ctx, parameter)
      ?.toLowerCase()
      .split(',')
      .map(name => /(?:^|:)(\w+)(?:\.\w+)?\s*$/.exec(name)?.[1] ?? '')
  const [only, without = []] = [read('attributes'), read('excludedAttributes')]
  const isShown = ([name]: [string, unknown]): boolean =>
    ['id', 'schemas', 'meta'].includes(name) ||
    (only ? only.includes(name.toLowerCase()) : !without.includes(name.toLowerCase()))
  return Object.fromEntries(Object.entries(resource).filter(isShown))
}
