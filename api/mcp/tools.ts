import rows from '#api/mcp/tools.json' with { type: 'json' }
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { applicationScopes, type ApplicationScope } from '#shared/access/applications.postgres.ts'
import type { Permissions } from '#shared/access/key.ts'

/**
 * Arguments of tools in the part of JSON Schema that every client hands on to its model: no references, no
 * unions, no formats, enumerations of strings only. What the endpoints take stands in the contract; a test
 * compares the two.
 */
export type ArgumentSchema = {
  type: 'string' | 'integer' | 'array' | 'object' | 'boolean'
  description?: string
  enum?: string[]
  minimum?: number
  maximum?: number
  default?: number
  items?: ArgumentSchema
  properties?: Record<string, ArgumentSchema>
  required?: string[]
}

/** What a client learns about a tool before it lets a model use it. */
type ToolHints = { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean }

export type Tool = {
  name: string
  title: string
  /** What it does, and when a model is to use it. */
  description: string
  inputSchema: {
    type: 'object'
    properties: Record<string, ArgumentSchema>
    required?: string[]
  }
  annotations: ToolHints & { title: string; openWorldHint: false }
  endpoint: Endpoint
}

const hintsByEffect: Record<string, ToolHints> = {
  reads: { readOnlyHint: true },
  adds: { readOnlyHint: false, destructiveHint: false },
  changes: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
}

/** The tools of the vault, by the endpoint that each calls. */
export const tools: Tool[] = (
  rows as (Omit<Tool, 'annotations' | 'endpoint'> & { effect: string; operation: string })[]
).map(({ effect, operation, ...row }) => ({
  ...row,
  annotations: { title: row.title, ...hintsByEffect[effect]!, openWorldHint: false },
  endpoint: contractDocument.endpoints[operation]!,
}))

export const toolNames: readonly string[] = rows.map(({ name }) => name)

/** The values of arguments that a model left out. */
export const defaultsOf = (properties: Record<string, ArgumentSchema>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      schema.default === undefined ? [] : [[name, schema.default] as const],
    ),
  )

/** The rights of an application that a tool needs: `delete` for what is gone for good, in place of `write`. */
export const scopesOf = ({ name, endpoint }: Tool): ApplicationScope[] =>
  applicationScopes.filter(scope =>
    name === 'delete' ? scope === 'delete' : (endpoint.needs as readonly string[]).includes(scope),
  )

/** Whether a key with these permissions, and a login with these scopes, may use a tool at all. */
export const mayUse = (tool: Tool, { permissions, scopes }: ToolRights): boolean =>
  (permissions.retrieve || !tool.endpoint.needs.includes('read')) &&
  (permissions.store || !tool.endpoint.needs.includes('write')) &&
  (scopes === undefined || scopesOf(tool).every(scope => scopes.includes(scope)))

export type ToolRights = {
  permissions: Permissions
  /** The scopes of a login; undefined for a key, which has none. */
  scopes?: readonly ApplicationScope[] | undefined
}
