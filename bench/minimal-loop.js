/** The floor: a hand-written loop with no validation, no copies, no abort, a direct callback, and Promise.all. */
export async function minimalLoop(prompts, context, emit, streamFn) {
  const messages = [...context.messages];
  const added = [];
  const tools = new Map(context.tools.map((tool) => [tool.name, tool]));
  const add = (message) => {
    messages.push(message);
    added.push(message);
  };
  emit({ type: "agent_start" });
  for (const prompt of prompts) {
    emit({ type: "message", message: prompt });
    add(prompt);
  }
  for (;;) {
    emit({ type: "turn_start" });
    let answer;
    for await (const event of streamFn(context.model, { messages, tools: context.tools })) {
      if (event.type === "done") {
        answer = event.message;
        break;
      }
      emit({ type: "update", event });
    }
    emit({ type: "message", message: answer });
    add(answer);
    const calls = answer.content.filter((block) => block.type === "toolCall");
    const results = await Promise.all(
      calls.map(async (call) => {
        emit({ type: "tool_start", call });
        const result = await tools.get(call.name).execute(call.id, call.arguments);
        emit({ type: "tool_end", call, result });
        return {
          role: "toolResult",
          toolCallId: call.id,
          toolName: call.name,
          content: result.content,
          isError: false,
          timestamp: Date.now(),
        };
      }),
    );
    for (const result of results) {
      emit({ type: "message", message: result });
      add(result);
    }
    emit({ type: "turn_end", answer, results });
    if (calls.length === 0) break;
  }
  emit({ type: "agent_end", messages: added });
  return added;
}
