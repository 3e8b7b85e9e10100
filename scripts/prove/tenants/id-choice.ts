import type { Endpoint } from '#api/contract/document.ts'

/** Parts of a path that are no ids. */
export const fixedParams: Readonly<Record<string, string>> = {
  provider: 'openai',
  model: 'gemini-2.5-flash',
}

/** Which of its own ids a tenant names: any, one it may change, one it ends, one it keeps. */
export type IdChoice = 'any' | 'own' | 'take' | 'lasting'

/** Which of its own ids a tenant names in a path: what it changes or ends is nothing that it keeps. */
export function idChoiceOf({ method, path }: Endpoint, name: string): IdChoice {
  if (method === 'DELETE' && path.endsWith(`:${name}`)) return 'take'
  if (name === 'orgId' || name === 'accountId') return 'lasting'
  return method === 'GET' ? 'any' : 'own'
}
