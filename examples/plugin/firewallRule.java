package generated_program;

import com.pulumi.Context;
import com.pulumi.Pulumi;
import com.pulumi.core.Output;
import com.pulumi.gatehouse.FirewallRule;
import com.pulumi.gatehouse.FirewallRuleArgs;
import com.pulumi.gatehouse.inputs.FirewallRuleFilterArgs;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;

public class App {
    public static void main(String[] args) {
        Pulumi.run(App::stack);
    }

    public static void stack(Context ctx) {
        var office = new FirewallRule("office", FirewallRuleArgs.builder()
            .action("allow")
            .priority(20)
            .sourceIp("^192\\.0\\.2\\.")
            .username(".*")
            .filter(FirewallRuleFilterArgs.builder()
                .hostname("^db-0[12]$")
                .build())
            .build());

        var elsewhere = new FirewallRule("elsewhere", FirewallRuleArgs.builder()
            .action("deny")
            .priority(10)
            .sourceIp(".*")
            .username(".*")
            .filter(FirewallRuleFilterArgs.builder()
                .hostname("^db-0[12]$")
                .build())
            .build());

    }
}
