import { chatgpt } from '#scripts/clients/import/formats/chatgpt.ts'
import { claude } from '#scripts/clients/import/formats/claude.ts'
import { claudeCode } from '#scripts/clients/import/formats/claude-code.ts'
import { codex } from '#scripts/clients/import/formats/codex.ts'
import { isObject } from '#scripts/clients/import/formats/fields.ts'
import type { Format } from '#scripts/clients/import/formats/format.ts'
import { gemini } from '#scripts/clients/import/formats/gemini.ts'
import { langgraph } from '#scripts/clients/import/formats/langgraph.ts'
import { letta } from '#scripts/clients/import/formats/letta.ts'
import { mem0 } from '#scripts/clients/import/formats/mem0.ts'
import { okf } from '#scripts/clients/import/formats/okf.ts'
import { zep } from '#scripts/clients/import/formats/zep.ts'

/** The exports that can be imported, by the word after `--from`. */
export const formats: Readonly<Record<string, Format>> = {
  chatgpt,
  claude,
  'claude-code': claudeCode,
  codex,
  gemini,
  mem0,
  letta,
  langgraph,
  zep,
  okf,
}

/** Returns the name of the first format that recognizes a value, or the first element of its first array. */
export function guessFormat(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  const inner = Object.values(value).find(Array.isArray)?.[0] as unknown
  const candidates = [value, inner].filter(isObject)
  return Object.keys(formats).find(name =>
    candidates.some(candidate => formats[name]!.recognizes(candidate)),
  )
}
