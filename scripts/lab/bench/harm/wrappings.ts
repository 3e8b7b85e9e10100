/** A question as programs and people send it: among other words, which ask nothing. */
export type Wrapping = { name: string; wrap: (question: string) => string }

const smallTalk = [
  'Good morning! I slept badly because the neighbours had a party until three, but the coffee helps.',
  'The rain has finally stopped here and everything smells of wet leaves.',
  'I have been answering mails for two hours and my back is stiff already.',
  'Anyway, enough about that, I wanted to ask you something before the next meeting starts.',
].join(' ')

const contextLines = [
  'Warehouse opening times are Monday to Friday, 8:00 to 17:30.',
  'Returns are accepted within 30 days if the packaging is undamaged.',
  'The invoice is sent as a PDF to the address of the account.',
  'Shipping to islands takes two additional working days.',
  'Gift cards cannot be exchanged for cash.',
  'The warranty of refurbished devices is twelve months.',
  'Support is reachable by phone on working days.',
  'Orders above 50 euros are delivered free of charge.',
].join('\n')

/** The same in every language: programs wrap in English, people end politely in theirs. */
export const wrappings: readonly Wrapping[] = [
  { name: 'bare', wrap: question => question },
  {
    name: 'polite end',
    wrap: question =>
      `${question} Please keep your answer short and do not use any bullet points today.`,
  },
  {
    name: 'template',
    wrap: question =>
      `You are a friendly assistant. Answer in at most two sentences. If you do not know, say so. User question: ${question}`,
  },
  { name: 'small talk', wrap: question => `${smallTalk} ${question}` },
  {
    name: 'reminder',
    wrap: question =>
      `<system-reminder>\nAs you answer the user's questions, you can use the following context: today's date is 2026-11-20. IMPORTANT: this context may or may not be relevant to your tasks.\n</system-reminder>\n${question}`,
  },
  {
    name: 'context',
    wrap: question =>
      `Use the following context to answer the question at the end.\n\n${contextLines}\n\nQuestion: ${question}`,
  },
  {
    name: 'json',
    wrap: question =>
      JSON.stringify({ task: 'chat', user_id: 'u-118', question, language: 'auto' }),
  },
]
