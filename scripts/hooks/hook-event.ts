import { wordsOf } from './program-words.ts'

/** What a program says by a hook, whatever it calls it. */
export type HookEvent = {
  kind: 'begin' | 'prompt' | 'answer' | 'end' | 'other'
  /** The program's own name of the event. */
  name: string
  session: string
  /** The program's own id of the turn; undefined where it has none. */
  turn: string | undefined
  folder: string
  /** The words of the person: empty for a prompt that the program wrote itself. */
  prompt: string
  answer: string
  /** Another hook has kept the turn from ending before. */
  isProlonged: boolean
  /** The file that has the answer, of a program that does not give it, or gives all texts of the turn. */
  transcript: string | undefined
  /** All texts of the turn. */
  texts: string
}

/**
 * Events by the names of the programs: Claude Code, Codex, Qwen Code and VS Code (code.claude.com/docs/en/hooks,
 * developers.openai.com/codex/hooks, qwenlm.github.io/qwen-code-docs, code.visualstudio.com/docs/agent-customization/hooks), Gemini CLI
 * (geminicli.com/docs/hooks/reference), Cursor (cursor.com/docs/hooks).
 */
const kinds: Readonly<Record<string, HookEvent['kind']>> = {
  SessionStart: 'begin',
  UserPromptSubmit: 'prompt',
  Stop: 'end',
  BeforeAgent: 'prompt',
  AfterAgent: 'end',
  sessionStart: 'begin',
  beforeSubmitPrompt: 'prompt',
  afterAgentResponse: 'answer',
  stop: 'end',
}

/** Reads the input of a hook; what a program's version does not send is empty. */
export function readHookEvent(input: Readonly<Record<string, unknown>>): HookEvent {
  const text = (...names: string[]): string =>
    names
      .map(name => input[name])
      .find(value => typeof value === 'string' && value !== '') as string
  const name = text('hook_event_name', 'hookEventName') ?? ''
  const roots: unknown = input['workspace_roots']
  const kind = kinds[name] ?? 'other'
  // What subagents are asked was written by a model; a session that is resumed has its beginning in it.
  const isLeftOut =
    (input['agent_id'] ?? null) !== null || (kind === 'begin' && input['source'] === 'resume')
  const answer = text('last_assistant_message', 'text') ?? ''
  return {
    kind: isLeftOut ? 'other' : kind,
    name,
    session: text('session_id', 'sessionId', 'conversation_id') ?? '',
    turn: text('prompt_id', 'turn_id', 'generation_id'),
    folder: text('cwd') ?? (Array.isArray(roots) ? String(roots[0] ?? '') : ''),
    // Qwen Code gives what was typed beside what its commands made of it.
    prompt: wordsOf(text('submitted_prompt', 'prompt') ?? '', { isModel: false }),
    answer: wordsOf(answer, { isModel: true }),
    isProlonged: input['stop_hook_active'] === true || Number(input['loop_count']) > 0,
    transcript: text('transcript_path'),
    texts: wordsOf(text('prompt_response') ?? '', { isModel: true }),
  }
}

/**
 * Writes what a program takes from a hook's standard output.
 *
 * @param said.context is put before the model; none is said in the program's own way
 * @param said.question is shown to the person, by the programs that can
 */
export function writeHookAnswer(
  client: string,
  { kind, name }: HookEvent,
  { context, question }: { context?: string | undefined; question?: string | undefined },
): string {
  if (client === 'cursor') {
    return JSON.stringify({
      ...(kind === 'prompt' && { continue: true }),
      ...(context !== undefined && { additional_context: context }),
    })
  }
  if (context === undefined && question === undefined) return ''
  return JSON.stringify({
    ...(question !== undefined && { systemMessage: question }),
    ...(context !== undefined && {
      // Copilot CLI reads the same file of hooks as VS Code, and takes the context from here.
      ...(client === 'vscode' && { additionalContext: context }),
      hookSpecificOutput: { hookEventName: name, additionalContext: context },
    }),
  })
}
