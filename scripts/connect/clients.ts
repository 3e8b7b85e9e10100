import { claudeCode } from '#scripts/connect/claude-code.ts'
import type { Client } from '#scripts/connect/client.ts'
import { codex } from '#scripts/connect/codex.ts'
import { cursor } from '#scripts/connect/cursor.ts'
import { gemini } from '#scripts/connect/gemini.ts'
import { openWebui } from '#scripts/connect/open-webui.ts'
import { opencode } from '#scripts/connect/opencode.ts'
import { vscode } from '#scripts/connect/vscode.ts'

/** Every program that can be connected, by the name that the command takes. */
export const clients: Record<string, Client> = {
  'claude-code': claudeCode,
  codex,
  gemini,
  opencode,
  cursor,
  vscode,
  'open-webui': openWebui,
}
