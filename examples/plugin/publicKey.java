package generated_program;

import com.pulumi.Context;
import com.pulumi.Pulumi;
import com.pulumi.core.Output;
import com.pulumi.gatehouse.PublicKey;
import com.pulumi.gatehouse.PublicKeyArgs;
import com.pulumi.gatehouse.inputs.PublicKeyFilterArgs;
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
        var ana = new PublicKey("ana", PublicKeyArgs.builder()
            .name("Ana, gateways")
            .data("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY")
            .username("^(ana|root)$")
            .filter(PublicKeyFilterArgs.builder()
                .tags("edge")
                .build())
            .build());

    }
}
