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

type Arguments = Record<string, ArgumentSchema>

export const text = (description: string): ArgumentSchema => ({ type: 'string', description })

export const flag = (description: string): ArgumentSchema => ({ type: 'boolean', description })

export const oneOf = (names: string[], description: string): ArgumentSchema => ({
  type: 'string',
  enum: names,
  description,
})

const integer = (minimum: number, maximum: number, description: string): ArgumentSchema => ({
  type: 'integer',
  minimum,
  maximum,
  description,
})

export const limit = (most: string, count: number): ArgumentSchema => ({
  ...integer(1, 200, most),
  default: count,
})

export const maxTokens = (description: string, count: number): ArgumentSchema => ({
  ...integer(1_000, 200_000, description),
  default: count,
})

export const list = (items: ArgumentSchema, description: string): ArgumentSchema => ({
  type: 'array',
  items,
  description,
})

export const sessionId = text('Only for a session: its id, as `sessions` lists it')
export const memoryId = text('The id of a memory, as other tools show it')
export const cursor = text('`next_cursor` of the page before')
export const moment = (description: string): ArgumentSchema =>
  text(`${description}, as 2026-11-20 or 2026-11-20T15:15:00Z`)

const tierMeaning = '1: what was said, word for word; 2: reflections; 3: high-level reflections'
export const tier = integer(1, 3, `Only this kind. ${tierMeaning}`)
export const tiers = list(integer(1, 3, tierMeaning), 'Only these kinds; all when left out')
export const batchTier = integer(1, 2, '1 makes reflections, 2 high-level ones')

export const messages = (description: string): ArgumentSchema =>
  list(
    {
      type: 'object',
      properties: {
        role: oneOf(['user', 'assistant'], 'Who said it'),
        content: { type: 'string' },
        timestamp: moment('When it was said; now when left out'),
      },
      required: ['role', 'content'],
    },
    description,
  )

export const entries: ArgumentSchema = list(
  {
    type: 'object',
    properties: {
      text: text('Prose that stands for itself'),
      importance: integer(1, 10, 'How much it matters that this is still known'),
    },
    required: ['text', 'importance'],
  },
  'The reflections',
)

/** The arguments of a tool, the required ones by name. */
export const inputSchema = (properties: Arguments, required: string[] = []) => ({
  type: 'object' as const,
  properties,
  ...(required.length > 0 && { required }),
})

/** The values of arguments that a model left out. */
export const defaultsOf = (properties: Arguments): Record<string, number> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      schema.default === undefined ? [] : [[name, schema.default] as const],
    ),
  )
