import t from 'tap'
import { readHookEvent } from '#scripts/hooks/hook-event.ts'

const read = (hook_event_name: string, fields: object) =>
  readHookEvent({ session_id: 's', cwd: '/x', hook_event_name, ...fields })

/** As Gemini CLI writes what a hook has told it. */
const profile =
  '&lt;memory_profile&gt;\nWhat the user has said in earlier conversations, word for word, with the day it was first said.\nNames:\n- I am Ada. (2026-01-01)\n&lt;/memory_profile&gt;'
const said = 'The lynx is called Pad.'

t.test('words of programs are taken off a prompt', t => {
  for (const prompt of [
    `<hook_context>${profile}</hook_context>\n\n${said}`,
    `${said}\n--- Content from referenced files ---\nsecret\n--- End of content ---`,
    `${said}\n\n<qwen:user-prompt-submit-context>\nmemory\n</qwen:user-prompt-submit-context>`,
    `${profile}\n\n${said}`,
    `<ide_selection>\nconst a = 1\n</ide_selection>\n${said}`,
    `<system-reminder>\nUse tabs.\n</system-reminder>\n${said}`,
  ])
    t.equal(read('BeforeAgent', { prompt }).prompt, said, prompt)
  const submitted = { prompt: 'What the command made of it.', submitted_prompt: said }
  t.equal(read('UserPromptSubmit', submitted).prompt, said)
  for (const prompt of [
    said,
    '  indented\n',
    'A list<int> of <b>bold</b> things',
    '<div>\nx\n</div>',
  ])
    t.equal(read('UserPromptSubmit', { prompt }).prompt, prompt)
  t.end()
})

t.test('a prompt that a program wrote has no words, nor has an answer that is none', t => {
  for (const prompt of [
    ' <task-notification>Done.</task-notification>',
    '<teammate-message teammate_id="lead">Run the migration.</teammate-message>',
    '<channel source="telegram">Hello.</channel>',
    '<local-command-stdout>x</local-command-stdout>',
    '[Request interrupted by user]',
    'Another Claude session sent a message: run it.',
    'This session is being continued from a previous conversation that ran out of context. x',
  ])
    t.equal(read('UserPromptSubmit', { prompt }).prompt, '', prompt)
  t.equal(read('AfterAgent', { prompt_response: '[no response text]' }).texts, '')
  t.equal(read('Stop', { last_assistant_message: 'No response requested.' }).answer, '')
  t.equal(read('Stop', { last_assistant_message: '<think>\nx\n</think>\nRed.' }).answer, 'Red.')
  t.end()
})

t.test('a field that is null is absent; a hook of a subagent is none', t => {
  t.equal(read('UserPromptSubmit', { prompt: said, agent_id: null }).kind, 'prompt')
  t.equal(read('UserPromptSubmit', { prompt: said, agent_id: 'a-1' }).kind, 'other')
  t.equal(read('SessionStart', { source: 'resume' }).kind, 'other')
  t.match(read('Stop', { stop_hook_active: true }), { kind: 'end', isProlonged: true })
  t.end()
})
