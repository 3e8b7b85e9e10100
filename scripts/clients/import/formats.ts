import { formats as everywhere, type Formats } from '#api/import/formats.ts'
import { claudeCode } from '#scripts/clients/import/formats/claude-code.ts'
import { codex } from '#scripts/clients/import/formats/codex.ts'
import { okf } from '#scripts/clients/import/formats/okf.ts'

/** The exports that can be imported, by the word after `--from`: sessions are named by the repositories of this machine. */
export const formats: Formats = { ...everywhere, 'claude-code': claudeCode, codex, okf }
