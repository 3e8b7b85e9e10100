import t from 'tap'
import { wrappings } from '#scripts/lab/bench/harm/wrappings.ts'
import { fillDates, questions, readConversation } from '#scripts/clients/demo/conversation.ts'
import { startService } from '#test/support/start/start-service.ts'

/** A question is found however it is wrapped, and a text that asks for nothing of the vault gets nothing. */

const { newClient } = await startService(t)
const api = await newClient()
const now = new Date()
const conversation = readConversation(now)
for (const { turns } of conversation.sittings) {
  await api.post('/v1/memory/ingest?wait=true', { messages: turns })
}

async function contextFor(content: string): Promise<string | null> {
  const { status, body } = await api.post('/v1/memory/prepare', {
    messages: [{ role: 'user', content }],
  })
  if (status !== 200) throw new Error(`status ${status}`)
  return body.context as string | null
}

for (const { name, wrap } of wrappings) {
  t.test(`${name}: the memory that answers is in the block, and among the first five`, async t => {
    const missed: string[] = []
    const notFirst: string[] = []
    for (const { text, answerTurnId } of questions) {
      const message = wrap(fillDates(text, now))
      const answer = conversation.turnText(answerTurnId)
      if (!(await contextFor(message))?.includes(answer.slice(0, 60))) missed.push(text)
      const { body } = await api.post('/v1/memory/search', { query: message, limit: 5 })
      if (!body.memories.some(({ content }: { content: string }) => content === answer))
        notFirst.push(text)
    }
    t.ok(missed.length <= 1, `${missed.length} of ${questions.length} missed: ${missed.join(' ')}`)
    t.ok(notFirst.length <= 1, `${notFirst.length} not found: ${notFirst.join(' ')}`)
  })
}

const unrelated = [
  'I have been reading about the history of the Byzantine empire lately. The emperors had an elaborate system of court titles. Some of them were eunuchs with enormous influence. The walls of the capital withstood sieges for centuries. Which emperor introduced the theme system, and how did it change the army?',
  'Quantum computers need error correction because qubits decohere. Surface codes are the most popular approach. They use a two-dimensional lattice of physical qubits. Each logical qubit takes hundreds of physical ones. Could you explain how the syndrome is measured without destroying the encoded state?',
  'Our physics class is about thermodynamics this term. The teacher says entropy is a measure of disorder, while the textbook talks about microstates. I find both definitions confusing. What is the relation between the Boltzmann constant and the number of microstates?',
  'Ich beschäftige mich gerade mit der Französischen Revolution. Der Sturm auf die Bastille war ja eher symbolisch. Danach kam die Schreckensherrschaft unter Robespierre. Die Guillotine stand auf einem großen Platz. Warum wurde Robespierre am Ende selbst hingerichtet?',
  "J'étudie la géologie des volcans. Il y a des volcans effusifs et des volcans explosifs. La viscosité du magma joue un rôle essentiel. Le dioxyde de silicium augmente cette viscosité. Pourquoi le magma des Andes est-il si riche en silice ?",
  'Estoy leyendo sobre la teoría de números. Los primos gemelos difieren en dos unidades. Nadie ha demostrado que haya infinitos. Zhang probó un resultado parcial en 2013. ¿Cuál es la mejor cota conocida hoy para la distancia entre primos consecutivos?',
  'Sto preparando un esame di diritto costituzionale. La separazione dei poteri risale a Montesquieu. In Italia il parlamento è bicamerale. Le leggi costituzionali richiedono una doppia deliberazione. Quando serve il referendum confermativo?',
  'Я изучаю теорию графов. Граф называется планарным, если его можно нарисовать без пересечений. Теорема Куратовского даёт критерий планарности. Полный граф из пяти вершин не планарен. Как доказать эту теорему через стягивание рёбер?',
  '我最近在研究量子力学。薛定谔方程描述波函数的演化。测量会导致波函数坍缩。不同的诠释对此有不同的看法。多世界诠释如何解释概率？',
  '最近、平安時代の文学を読んでいます。源氏物語はとても長い作品です。登場人物の関係が複雑です。和歌もたくさん出てきます。藤壺が出家した理由は何ですか？',
  'أقرأ هذه الأيام عن تاريخ الأندلس. سقطت غرناطة في القرن الخامس عشر. ازدهرت العلوم في قرطبة قبل ذلك. ترجمت كتب كثيرة إلى اللاتينية. من هو مؤسس الدولة الأموية هناك؟',
  'मैं आजकल प्राचीन भारत का इतिहास पढ़ रहा हूँ। मौर्य साम्राज्य बहुत विशाल था। अशोक ने बौद्ध धर्म अपनाया। कलिंग का युद्ध निर्णायक था। चंद्रगुप्त के गुरु कौन थे?',
  'Estou aprendendo sobre compiladores. A análise léxica produz tokens. A análise sintática constrói uma árvore. Depois vem a geração de código intermediário. Qual é a diferença entre um parser LL e um parser LR?',
  'The stack trace says that a null pointer was dereferenced in the renderer. I bisected the regression to a commit that touches the shader cache. The mutex is released before the pipeline object is destroyed. Thread sanitizer reports a data race. Which memory ordering does an atomic reference counter need on decrement?',
  'For the seminar I compare monetary policy in the 1970s with today. Stagflation surprised most Keynesians. Volcker raised the federal funds rate sharply. Inflation expectations became anchored afterwards. What does the Taylor rule say about the neutral rate?',
  'A glacier moves by internal deformation and basal sliding. Crevasses open where the ice is stretched. Moraines mark the former margins. Isotopes in ice cores record past temperatures. How is the age of the deepest layers determined?',
  '저는 요즘 조선 시대의 역사를 공부하고 있습니다. 세종은 훈민정음을 창제했습니다. 집현전 학자들이 그 일을 도왔습니다. 양반 가운데 반대한 사람도 있었습니다. 최만리가 반대 상소를 올린 까닭은 무엇입니까?',
]

t.test('long messages about other things get no block', async t => {
  for (const message of unrelated) t.equal(await contextFor(message), null, message.slice(0, 60))
  for (const message of ['thanks!', 'Hello there!', 'Continue', 'Can you help me?'])
    t.equal(await contextFor(message), null, message)
})
